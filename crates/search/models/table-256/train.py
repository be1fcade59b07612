"""Distils a table of word vectors from a transformer: texts shall get the vector, in the plane of
its 256 widest directions, that the transformer gives them, as a mere sum of the vectors of their words.

    python3 train.py GRANITE.BIN TOKENIZER.JSON PAIRS.jsonl.xz OUT

GRANITE.BIN is the packed teacher of the folder beside this one, TOKENIZER.JSON its tokenizer, PAIRS
what pairs.py writes. Writes `rows.txt` and `table.bin` into OUT. Needs PyTorch with a GPU, numpy and
tokenizers; takes two minutes.
"""

import json
import lzma
import multiprocessing
import re
import sys
import unicodedata
from collections import Counter

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

ROWS, DIMENSIONS, SEED = 57_000, 256, 7
EPOCHS, BATCH, RATE, BETAS = 10, 16_384, 2e-3, (0.9, 0.99)
# How much of the difference between wide and narrow directions is levelled: one half of it.
LEVEL = 0.5
# How many steps a number of a row has on either side of zero. Words add up, so what one loses is made good by others:
# seven rank as well as 127, and pack to half the size.
STEPS = 7
# The ranking of the texts of a batch counts a little beside their vectors.
RANKING, RANKED, SOFT, TEACHER_SOFT = 0.05, 4096, 0.05, 0.03
# A word as frequent as this starts with half its weight.
FREQUENT = 1e-3
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789αβγδεζηθικλμνξοπρστυφχψω"
DEVICE = "cuda"

# Cutting texts: the same rules as in `words.rs`.
RUN = re.compile(r"[^\W_]+")
PART = re.compile(r"\d+|[^\W\d_]+")
HUMP = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
MAX_PIECE, MAX_RUN = 24, 64
HEADS, TAILS, SEEN = {}, {}, {}


def fold(text):
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def pieces(word):
    at, found, table = 0, [], HEADS
    while at < len(word):
        for end in range(min(len(word), at + MAX_PIECE), at, -1):
            row = table.get(word[at:end])
            if row is not None:
                found.append(row)
                at, table = end, TAILS
                break
        else:
            at += 1
    return found


def rows_of_run(run):
    row = HEADS.get(run.lower())
    if row is not None:
        return [row]
    parts = [part.lower() for run in PART.findall(run[:MAX_RUN]) for part in HUMP.split(run) if part]
    return [row for part in parts for row in ([HEADS[part]] if part in HEADS else pieces(part))]


def rows(text):
    found = []
    for run in RUN.findall(fold(text)):
        if run not in SEEN:
            SEEN[run] = rows_of_run(run)
        found += SEEN[run]
    return np.array(found[:512], np.int32)


def rows_of_all(texts):
    return [rows(text) for text in texts]


def count(texts):
    return Counter(run.lower() for text in texts for run in RUN.findall(fold(text)))


def chunks(items, size):
    return [items[at : at + size] for at in range(0, len(items), size)]


def choose_rows(texts, vocabulary):
    """Every word and tail that the teacher knows, then the most frequent words of the texts."""
    counts = Counter()
    with multiprocessing.Pool() as pool:
        for some in pool.imap_unordered(count, chunks(texts, 8000)):
            counts.update(some)
    heads, tails = list(LETTERS), list(LETTERS)
    for token, _ in sorted(vocabulary.items(), key=lambda entry: entry[1]):
        word = token.lstrip("Ġ").lower()
        if not re.fullmatch(r"[a-z]{2,24}|\d{2,4}", word):
            continue
        if token.startswith("Ġ"):
            heads.append(word)
        elif token == word:
            tails.append(word)
    heads, tails = list(dict.fromkeys(heads)), list(dict.fromkeys(tails))
    known, plain = set(heads), re.compile(r"[a-zα-ω]+|[a-z]+\d{1,3}[a-z]?|\d{1,4}")
    more = [
        word
        for word, _ in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
        if word not in known and len(word) <= MAX_PIECE and plain.fullmatch(word)
    ]
    heads += more[: ROWS - len(heads) - len(tails)]
    HEADS.update({word: row for row, word in enumerate(heads)})
    TAILS.update({tail: len(heads) + row for row, tail in enumerate(tails)})
    return heads, tails


class Teacher:
    """The packed transformer, in half precision."""

    def __init__(self, path, tokenizer):
        self.data, self.at = open(path, "rb").read(), 12
        assert self.data[:8] == b"DOCENTGR"
        self.take("<u2", 256)
        merges = int(self.take("<u4", 1)[0])
        self.take("<u4", 50266)
        self.take("<u2", merges, 3)
        scales = self.floats(50265)
        self.words = self.whole(self.take("i1", 50265, 384)) * scales[:, None]
        self.positions, self.first_norm = self.floats(512, 384), self.norm()
        self.layers = [self.layer() for _ in range(6)]
        assert self.at == len(self.data)
        self.tokenizer = Tokenizer.from_file(tokenizer)
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(320)

    def take(self, kind, *shape):
        self.at += -self.at % 64
        array = np.frombuffer(self.data, kind, int(np.prod(shape)), self.at)
        self.at += array.nbytes
        return array.reshape(shape)

    def whole(self, array):
        return torch.tensor(array.astype(np.float32), device=DEVICE)

    def floats(self, *shape):
        return self.whole(self.take("<f4", *shape))

    def norm(self):
        return self.floats(384).half(), self.floats(384).half()

    def matrix(self, columns, depth):
        panels = self.take("i1", columns // 64, depth // 4, 64, 4)
        weights = self.whole(panels.transpose(0, 2, 1, 3).reshape(columns, depth))
        weights = weights * self.floats(columns)[:, None]
        self.floats(columns)
        return weights.T.half(), self.floats(columns).half()

    def layer(self):
        return (self.matrix(1152, 384), self.matrix(384, 384), self.norm(),
                self.matrix(1536, 384), self.matrix(384, 1536), self.norm())  # fmt: skip

    @torch.no_grad()
    def forward(self, ids, mask):
        def norm(x, weights):
            return F.layer_norm(x, (384,), *weights, 1e-12)

        batch, length = ids.shape
        x = norm((self.words[ids] + self.positions[:length]).half(), self.first_norm)
        for (qkv, qkv_bias), (out, out_bias), first, (up, up_bias), (down, down_bias), second in self.layers:
            q, k, v = (x @ qkv + qkv_bias).view(batch, length, 3, 12, 32).permute(2, 0, 3, 1, 4)
            # The pack has queries scaled for a softmax in powers of two.
            a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :], scale=float(np.log(2)))
            x = norm(x + a.transpose(1, 2).reshape(batch, length, 384) @ out + out_bias, first)
            x = norm(x + F.gelu(x @ up + up_bias) @ down + down_bias, second)
        return F.normalize(x[:, 0].float(), dim=-1)

    def __call__(self, texts):
        ids = [one.ids for some in chunks(texts, 50_000) for one in self.tokenizer.encode_batch(some)]
        order = np.argsort([-len(one) for one in ids], kind="stable")
        vectors, at = torch.zeros((len(texts), 384), dtype=torch.half, device=DEVICE), 0
        while at < len(order):
            longest = len(ids[order[at]])
            some = order[at : at + max(8, min(16_384, 400_000 // longest))]
            at += len(some)
            padded = np.ones((len(some), longest), np.int64)
            for row, one in enumerate(some):
                padded[row, : len(ids[one])] = ids[one]
            padded = torch.from_numpy(padded).to(DEVICE)
            vectors[torch.from_numpy(some).to(DEVICE)] = self.forward(padded, padded != 1).half()
        return vectors


class Texts:
    """Texts as rows and as the teacher's vectors."""

    def __init__(self, encoded, vectors):
        self.flat = torch.from_numpy(np.concatenate(encoded).astype(np.int64)).to(DEVICE)
        ends = np.cumsum([0] + [len(one) for one in encoded])
        self.begins, self.vectors = torch.from_numpy(ends).to(DEVICE), vectors

    def pooled(self, table, which):
        lengths = self.begins[which + 1] - self.begins[which]
        offsets = torch.cumsum(lengths, 0) - lengths
        steps = torch.arange(int(lengths.sum()), device=DEVICE) - torch.repeat_interleave(offsets, lengths)
        found = self.flat[steps + torch.repeat_interleave(self.begins[which], lengths)]
        return F.normalize(F.embedding_bag(found, table, offsets, mode="sum"), dim=-1)


def spans(texts, rng, shortest, longest, at_least):
    """A random span of words of each text that is long enough, as people type them."""
    found = []
    for text in texts:
        words = text.split()
        if len(words) > at_least:
            length = int(rng.integers(shortest, longest))
            at = int(rng.integers(0, len(words) - length))
            found.append(" ".join(words[at : at + length]))
    return found


def agreement(ours, theirs):
    """How differently two tables of similarities rank, in both directions."""
    loss = 0
    for ours, theirs in ((ours, theirs), (ours.T, theirs.T)):
        ours, theirs = F.log_softmax(ours, 1), F.log_softmax(theirs, 1)
        loss = loss + F.kl_div(ours, theirs, log_target=True, reduction="batchmean") / 2
    return loss


def train(table, every, goals, short, long):
    table = torch.nn.Parameter(table)
    optimizer = torch.optim.Adam([table], lr=RATE, betas=BETAS)
    steps, step = EPOCHS * (len(goals) // BATCH), 0
    for _ in range(EPOCHS):
        for which in torch.randperm(len(goals), device=DEVICE).split(BATCH)[: len(goals) // BATCH]:
            rate = RATE * min(1, (step + 1) / 50) * max(0.01, 1 - step / steps)
            optimizer.param_groups[0]["lr"] = rate
            loss = 1 - (every.pooled(table, which) * goals[which]).sum(1).mean()
            some = torch.randint(0, len(short.vectors), (RANKED,), device=DEVICE)
            ours = short.pooled(table, some) @ long.pooled(table, some).T / SOFT
            theirs = short.vectors[some].float() @ long.vectors[some].float().T / TEACHER_SOFT
            loss = loss + RANKING * agreement(ours, theirs)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            step += 1
    print("loss at the end", loss.item())
    return table.detach()


def save(table, seen, heads, tails, out):
    """Rows no text had keep their direction, and count as much as rare ones do."""
    norms, rare, unseen = table.norm(dim=1), (seen >= 3) & (seen <= 30), seen == 0
    table[unseen] *= (norms[rare].median() / norms[unseen].clamp_min(1e-6))[:, None]
    scales = table.abs().amax(1).clamp_min(1e-8) / STEPS
    whole = torch.round(table / scales[:, None]).clamp(-STEPS, STEPS).to(torch.int8)
    with open(f"{out}/table.bin", "wb") as file:
        file.write(scales.cpu().numpy().astype("<f4").tobytes() + whole.cpu().numpy().tobytes())
    with open(f"{out}/rows.txt", "w", encoding="utf-8") as file:
        file.writelines(f"{word}\n" for word in heads)
        file.writelines(f"##{tail}\n" for tail in tails)


def main():
    granite, tokenizer, pairs, out = sys.argv[1:]
    rng = np.random.default_rng(SEED)
    torch.manual_seed(SEED)
    pairs = [json.loads(line)[1:] for line in lzma.open(pairs, "rt", encoding="utf-8")]
    vocabulary = json.load(open(tokenizer, encoding="utf-8"))["model"]["vocab"]
    heads, tails = choose_rows([text for pair in pairs for text in pair], vocabulary)
    # Some short texts are spans of the long ones instead of headings and first sentences.
    longs = [long for _, long in pairs]
    shorts = [s if s and rng.random() >= 0.25 else (spans([l], rng, 3, 12, 12) or [l])[0] for s, l in pairs]
    more = spans(longs, rng, 2, 6, 8) + spans(longs, rng, 8, 30, 40)
    # Worker processes come before the GPU, and know the rows.
    with multiprocessing.Pool() as pool:
        short, long, extra = (sum(pool.map(rows_of_all, chunks(texts, 4000)), []) for texts in (shorts, longs, more))
    teacher = Teacher(granite, tokenizer)
    vectors = [teacher(texts) for texts in (shorts, longs, more)]
    alone = teacher([" " + word for word in heads] + tails)

    every = [one for one in zip(short + long + extra, range(10**9)) if len(one[0])]
    vectors_of_every = torch.cat(vectors)[torch.tensor([at for _, at in every], device=DEVICE)]
    every = Texts([one for one, _ in every], vectors_of_every)
    both = [at for at in range(len(pairs)) if len(short[at]) and len(long[at])]
    which = torch.tensor(both, device=DEVICE)
    short = Texts([short[at] for at in both], vectors[0][which])
    long = Texts([long[at] for at in both], vectors[1][which])

    sample = every.vectors[torch.randperm(len(every.vectors), device=DEVICE)[:400_000]].float()
    middle = sample.mean(0)
    widths, directions = torch.linalg.eigh((sample - middle).T @ (sample - middle) / len(sample))
    plane = directions[:, -DIMENSIONS:] / widths[-DIMENSIONS:].sqrt() ** LEVEL

    def seen_in_plane(vectors):
        return F.normalize((vectors.float() - middle) @ plane, dim=-1)

    seen = torch.bincount(every.flat, minlength=len(heads) + len(tails))
    weights = FREQUENT / (FREQUENT + seen / seen.sum())
    table = train(seen_in_plane(alone) * weights[:, None], every, seen_in_plane(every.vectors), short, long)
    save(table, seen, heads, tails, out)
    print(f"{len(heads)} words, {len(tails)} tails, {len(every.vectors)} texts, {int((seen == 0).sum())} rows unseen")


if __name__ == "__main__":
    main()
