"""Headers that promise what no file can hold: refused by name, before the memory for it is asked for."""

import gzip
import io
import json
import resource
import struct
import zipfile
import zlib

import numpy as np
import onnxruntime  # noqa: F401  (loaded here, because loading them takes memory)
import pytest
import torch  # noqa: F401

from faults import attribute_files, kept_files, mapper_files, model_files, result_files, user_files
from faults.pool import watched
from gfscore.core.errors import InputError

pytestmark = pytest.mark.seconds(35)

ROWS = 10**12
GROWTH = 200
"""MiB of resident memory that refusing a file may cost, libraries included."""


def npy_header(shape):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def npy(folder, name="logits.npy", shape=(ROWS, 3)):
    (folder / name).write_bytes(npy_header(shape) + user_files.LOGITS.tobytes())
    return folder / name


def npz(folder, array="logits"):
    with zipfile.ZipFile(folder / "logits.npz", "w") as archive:
        archive.writestr(f"{array}.npy", npy_header((ROWS, 3)) + user_files.LOGITS.tobytes())
    return folder / "logits.npz"


def pictures(folder):
    return npz(folder, "originals")


def npz_whose_directory_lies_too(folder):
    path, size = npz(folder), len(npy_header((ROWS, 3))) + user_files.LOGITS.nbytes
    # One size of 32 bits in the member's own header, one in the directory: 4 GiB at most, so fewer rows.
    promise = 2**32 - 2
    rows = npy_header(((promise - 128) // 12, 3))
    content = path.read_bytes().replace(npy_header((ROWS, 3)), rows)
    path.write_bytes(content.replace(struct.pack("<I", size), struct.pack("<I", promise)))
    return path


def npz_images(folder):
    with zipfile.ZipFile(folder / "images.npz", "w") as archive:
        archive.writestr("x.npy", npy_header((ROWS, 8, 8, 3)))
        archive.writestr("y.npy", npy_header((ROWS,)))
    return folder / "images.npz"


def corrupted(folder):
    user_files.corrupted_images(folder)
    return npy(folder, "fog.npy", (5 * ROWS, 8, 8, 3))


def parquet(folder, names=("label", *user_files.CLASSES)):
    """A whole file: one row is written, and the others are equal to it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: pa.array(np.zeros(2 * 10**7, dtype=np.int8)) for name in names}
    pq.write_table(pa.table(columns), folder / "logits.parquet", compression="zstd")
    assert (folder / "logits.parquet").stat().st_size < 10**6
    return folder / "logits.parquet"


def attributes(folder):
    return parquet(folder, ("who", "age", "sex", "young"))


def parquet_columns(folder):
    """Fewer rows than any file may have, of many columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    equal = pa.array(np.zeros(3 * 10**6, dtype=np.int8))
    pq.write_table(pa.table({f"c{place}": equal for place in range(30)}), folder / "logits.parquet")
    return folder / "logits.parquet"


def parquet_lists(folder):
    """Few rows whose lists are long and equal."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows, length = 30_000, 1000
    values = pa.array(np.zeros(rows * length, dtype=np.float32))
    equal = pa.ListArray.from_arrays(pa.array(np.arange(0, rows * length + 1, length, dtype=np.int32)), values)
    pq.write_table(pa.table({"logits": equal}), folder / "logits.parquet", compression="zstd")
    return folder / "logits.parquet"


def parquet_lists_in_structs(folder):
    """The same lists inside of a struct, a column that nobody needs."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    lists = pq.read_table(parquet_lists(folder))["logits"].combine_chunks()
    pq.write_table(pa.table({"more": pa.StructArray.from_arrays([lists], ["values"])}), folder / "logits.parquet")
    return folder / "logits.parquet"


def gzipped(folder):
    """Text of equal rows, which deflate makes a thousandth of."""
    with gzip.open(folder / "logits.csv.gz", "wb") as file:
        file.write(b"cat,dog,frog\n")
        file.writelines(b"0,0,0\n" * 500_000 for _ in range(100))
    return folder / "logits.csv.gz"


def celeba(folder):
    path = attribute_files.celeba_attributes(folder)
    path.write_text(path.read_text().replace(str(user_files.SAMPLES), str(ROWS), 1))
    return path


def table(folder):
    return with_rows(result_files.logits_table(folder))


def attributes_table(folder):
    return with_rows(attribute_files.attributes_table(folder))


def kept_part(folder):
    return with_rows(kept_files.kept_part(folder))


def with_rows(path):
    """The footer's number of rows, a varint in its Thrift structure, is another."""
    content = path.read_bytes()
    # Field 3 of FileMetaData: i64, zigzag; the same field in the row group.
    small, large = b"\x16" + _varint(2 * user_files.SAMPLES), b"\x16" + _varint(2 * ROWS)
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer = content[start:-8].replace(small, large)
    assert footer != content[start:-8]
    path.write_bytes(content[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    return path


def _varint(number):
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def safetensors(folder):
    header = {"weight": {"dtype": "F32", "shape": [ROWS, 4], "data_offsets": [0, 16 * ROWS]}}
    text = json.dumps(header).encode()
    (folder / "weights.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(64))
    return folder / "weights.safetensors"


def safetensors_header(folder):
    (folder / "weights.safetensors").write_bytes((2**40).to_bytes(8, "little") + b'{"a": 1}' + bytes(64))
    return folder / "weights.safetensors"


def old_checkpoint(folder):
    """The storage's number of elements, in the pickle and before its bytes."""
    path = model_files.pt("old")(folder)
    content = path.read_bytes()
    elements = 4 * len(user_files.CLASSES)
    assert struct.pack("<q", elements) in content
    path.write_bytes(content.replace(struct.pack("<q", elements), struct.pack("<q", ROWS)))
    return path


def npz_bomb(folder):
    """Black images, of which deflate makes a thousandth: 1 GiB in 1 MB."""
    rows = 2**20
    path = compressed(folder / "images.npz", "x.npy", npy_header((rows, 16, 16, 1)), rows * 16 * 16 * 4)
    return compressed(path, "y.npy", npy_header((rows,)), rows * 4)


def zip_bomb(folder):
    """A checkpoint with zeros behind its weights, compressed."""
    return compressed(model_files.pt("zip")(folder), "archive/data/7", b"", 2**30)


def compressed(path, name, head, size):
    """Add zeros to an archive."""
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive, archive.open(name, "w") as file:
        file.write(head)
        for _ in range(size >> 20):
            file.write(bytes(1 << 20))
    assert path.stat().st_size < 2 * 10**6
    return path


def large_image(folder):
    """Black, of more pixels than photographs have: 177 million in 180 kB."""
    path = user_files.folder_images("PNG")(folder)
    width = height = 13_300
    header, packer = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0), zlib.compressobj(9)
    row = bytes(1 + -(-width // 8))
    data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    content = path.read_bytes()[:8]
    for kind, part in ((b"IHDR", header), (b"IDAT", data), (b"IEND", b"")):
        content += struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part))
    path.write_bytes(content)
    return path


def image(folder):
    path = user_files.folder_images("PNG")(folder)
    header = b"IHDR" + struct.pack(">IIBBBBB", 10**6, 10**6, 8, 2, 0, 0, 0)
    content = path.read_bytes()
    path.write_bytes(content[:12] + header + struct.pack(">I", zlib.crc32(header)) + content[33:])
    return path


def graph(folder):
    import onnx

    path = model_files.onnx_graph(folder)
    made = onnx.load(path)
    made.graph.initializer[0].dims[0] = ROWS
    path.write_bytes(made.SerializeToString())
    return path


PROMISES = {
    "npy": (npy, user_files.read_user_logits),
    "npz": (npz, user_files.read_user_logits),
    "npz, directory too": (npz_whose_directory_lies_too, user_files.read_user_logits),
    "npz of images": (npz_images, user_files.images_of(source="npz", value_range=255, channels="last")),
    "corrupted images": (corrupted, user_files.read_corrupted),
    "Parquet": (parquet, user_files.read_user_logits),
    "Parquet, columns": (parquet_columns, user_files.read_user_logits),
    "Parquet, lists": (parquet_lists, user_files.read_user_logits),
    "Parquet, lists in structs": (parquet_lists_in_structs, user_files.read_user_logits),
    "csv.gz": (gzipped, user_files.read_user_logits),
    "logits table": (table, result_files.read_logits_table),
    "attributes.parquet": (attributes, attribute_files.read_table),
    "attributes beside images": (attributes, attribute_files.read_columns),
    "attributes of CelebA": (celeba, attribute_files.read_celeba),
    "attributes table": (attributes_table, attribute_files.read_attributes_table),
    "pictures of a mapper": (pictures, mapper_files.read_pictures),
    "kept part of a measure": (kept_part, kept_files.read_kept_part),
    "mapper": (safetensors, mapper_files.read_mapper),
    "mapper, header": (safetensors_header, mapper_files.read_mapper),
    "safetensors": (safetensors, model_files.read_weights),
    "safetensors header": (safetensors_header, model_files.read_weights),
    "old PyTorch checkpoint": (old_checkpoint, model_files.read_weights),
    "npz that unpacks": (npz_bomb, user_files.images_of(source="npz", value_range=255, channels="last")),
    "PyTorch checkpoint that unpacks": (zip_bomb, model_files.read_weights),
    "PNG": (image, user_files.read_folder),
    "PNG that unpacks": (large_image, user_files.read_folder),
    "ONNX": (graph, model_files.read_onnx),
}


@pytest.mark.parametrize("name", PROMISES)
def test_a_header_that_promises_too_much_is_refused_without_the_memory(name, tmp_path):
    make, read = PROMISES[name]
    path = make(tmp_path)

    def attempt(_):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            read(path)
        except InputError as error:
            assert path.name in str(error)
            return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
        raise AssertionError("not refused")

    ((_, fault, growth),) = watched(attempt, [0])
    assert fault is None, fault
    assert growth < GROWTH
