"""Names of outputs in the files that tools write, and their classes in the data."""

import json

import pytest

from gfscore.core.errors import InputError
from gfscore.workflow.new_audit.class_order import match_classes
from gfscore.workflow.new_audit.output_names import names_in_metadata, names_of_option, order_of_option

NAMES = ("airplane", "kit fox", "no")

FILES = {
    "lines.txt": "airplane\nkit fox\n\nno\n",
    "marked.txt": "\ufeffairplane\r\nkit fox\r\nno\r\n",
    "numbers.txt": "0 airplane\n1 kit fox\n2 no\n",
    "colons.txt": "0: airplane\n2: no\n1: kit fox\n",
    "from_one.txt": "1. airplane\n2. kit fox\n3. no\n",
    "dict.txt": "{0: 'airplane',\n 1: 'kit fox',\n 2: 'no'}",
    "list.json": '["airplane", "kit fox", "no"]',
    "plain.json": '{"0": "airplane", "1": "kit fox", "2": "no"}',
    "inverse.json": '{"kit fox": 1, "airplane": 0, "no": 2}',
    "config.json": '{"model_type": "vit", "id2label": {"0": "airplane", "2": "no", "1": "kit fox"}, '
    '"label2id": {"airplane": 0, "kit fox": 1, "no": 2}}',
    "label2id.json": '{"label2id": {"kit fox": 1, "airplane": 0, "no": 2}}',
    "list.yaml": "path: ../data\nnc: 3\nnames: [airplane, kit fox, no]\n",
    "mapping.yaml": "train: images\nnames:\n  0: airplane\n  1: kit fox\n  2: no\n",
    "header.csv": "index,name\n0,airplane\n1,kit fox\n2,no\n",
    "turned.csv": "name,index\nno,2\nairplane,0\nkit fox,1\n",
    "bare.csv": "airplane,0\nkit fox,1\nno,2\n",
    "pandas.csv": ",name\n0,airplane\n1,kit fox\n2,no\n",
    "semicolons.csv": "id;label\n0;airplane\n1;kit fox\n2;no\n",
    "tabs.tsv": "id\tcolour\tname\n0\tred\tairplane\n1\tred\tkit fox\n2\tgrey\tno\n",
    "column.csv": "class_name\nairplane\nkit fox\nno\n",
    "HEADER.CSV": "name,index\nairplane,0\nkit fox,1\nno,2\n",
    "MAPPING.YAML": "names:\n  0: airplane\n  1: kit fox\n  2: no\n",
    "LIST.JSON": '["airplane", "kit fox", "no"]',
    "late.tsv": "\nid\tname\n0\tairplane\n1\tkit fox\n2\tno\n",
    "late.csv": "\nid;name\n0;airplane\n1;kit fox\n2;no\n",
    "empty_key.json": '{"id2label": {"0": "airplane", "1": "kit fox", "2": "no"}, "categories": [], "names": {}}',
    "from_one.json": '{"id2label": {"0": "airplane", "1": "kit fox", "2": "no"}, '
    '"label2id": {"airplane": 1, "kit fox": 2, "no": 3}}',
    "both_ways.json": '{"class_to_idx": {"airplane": 0, "kit fox": 1, "no": 2}, '
    '"idx_to_class": {"0": "airplane", "1": "kit fox", "2": "no"}}',
}


# Lists of lists of lists, written out 10^30 names.
BOMB = "a0: &a0 [cat, dog]\n" + "".join(
    f"a{depth}: &a{depth} [{', '.join(10 * [f'*a{depth - 1}'])}]\n" for depth in range(1, 31)
) + "names: *a30\n"  # fmt: skip


@pytest.fixture
def written(tmp_path):
    def write(name, text):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file_gives_the_same_names(written, name):
    assert order_of_option(written(name, FILES[name])) == NAMES


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file_finds_the_outputs_of_fewer_classes(written, name):
    path = written(name, FILES[name])
    indices, _ = match_classes(None, ["No", "airplane"], 3, option=path, where="net")
    assert indices == [2, 0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tabs.tsv", "0\ttench, Tinca, tinca\n1\tgoldfish, Carassius auratus\n"),
        ("semicolons.csv", "0;tench, Tinca, tinca\n1;goldfish, Carassius auratus\n"),
        ("commas.csv", '0,"tench, Tinca, tinca"\n1,"goldfish, Carassius auratus"\n'),
    ],
)
def test_commas_in_names_separate_no_columns(written, name, text):
    assert order_of_option(written(name, text)) == ("tench, Tinca, tinca", "goldfish, Carassius auratus")


def test_a_list_of_names_may_be_longer_than_the_name_of_a_file():
    names = [f"class number {number}" for number in range(100)]
    assert order_of_option(",".join(names)) == tuple(names)


def test_a_name_in_brackets_is_a_name(written):
    assert order_of_option(written("tokens.txt", "[unknown]\ncat\n[other]\n")) == ("[unknown]", "cat", "[other]")


@pytest.mark.parametrize(
    ("content", "names"),
    [
        # Names that are numbers, beside their places.
        ({"classes": ["3", "7"], "idx_to_class": {"0": "3", "1": "7"}}, ("3", "7")),
        ({"id2label": {"0": "3", "1": "7"}, "names": {"0": "3", "1": "7"}}, ("3", "7")),
        # Names or numbers in front: the other key tells.
        ({"names": {"0": "1", "1": "2", "2": "0"}, "classes": ["2", "0", "1"]}, ("2", "0", "1")),
        # Two outputs have one name, of which a mapping from names holds one.
        ({"id2label": {"0": "crane", "1": "cat", "2": "crane"}, "label2id": {"crane": 2, "cat": 1}},
         ("crane", "cat", "crane")),
    ],
)  # fmt: skip
def test_keys_that_say_the_same_agree(written, content, names):
    assert order_of_option(written("names.json", json.dumps(content))) == names


@pytest.mark.parametrize(
    "label2id",
    [{"cat": 0, "dog": -1}, {"cat": 0, "dog": -5}, {"cat": 0, "dog": 7}, {"cat": 0}, {"cat": 0, "dog": 1, "fox": 2}],
)
def test_keys_that_say_something_else_are_refused(written, label2id):
    path = written("names.json", json.dumps({"id2label": {"0": "cat", "1": "dog"}, "label2id": label2id}))
    with pytest.raises(InputError, match=r"names\.json: (id2label and )?label2id"):
        names_of_option(path)
    path = written("names.json", json.dumps({"id2label": {"0": "cat", "1": "cat"}, "label2id": label2id}))
    if label2id != {"cat": 0}:
        with pytest.raises(InputError, match=r"names\.json: id2label and label2id name the outputs differently"):
            names_of_option(path)


def test_wnids_in_front_of_names_are_names_too(written):
    lines = written("synsets.txt", "n02119789 kit fox, Vulpes macrotis\nn02100735 English setter\nn02012849 crane\n")
    keras = written(
        "imagenet_class_index.json",
        '{"0": ["n02119789", "kit_fox"], "1": ["n02100735", "English_setter"], "2": ["n02012849", "crane"]}',
    )
    for path in (lines, keras):
        for classes in (["n02012849", "n02119789"], ["crane", "Kit fox"], ["crane bird", "n02119789"]):
            assert match_classes(None, classes, 3, option=path, where="net")[0] == [2, 0]


def test_ten_of_the_thousand_classes_of_imagenet_are_found_in_its_index(written):
    from gfscore.core.labels import imagenet_names

    pairs = [[wnid, name.replace(" ", "_")] for wnid, name in imagenet_names().items()]
    # As Keras has them: two classes are called crane.
    pairs[134][1] = pairs[517][1] = "crane"
    path = written("imagenet_class_index.json", json.dumps({str(k): pair for k, pair in enumerate(pairs)}))
    places = [3, 134, 200, 281, 517, 638, 639, 700, 850, 999]
    wnids = list(imagenet_names())
    for asked in (path, None):
        indices, _ = match_classes(None, [wnids[k] for k in places], 1000, option=asked, where="net")
        assert indices == places
    with pytest.raises(InputError, match=r"'crane' of the data may be output 134 .* or 517"):
        match_classes(None, ["crane", "tench"], 1000, option=path, where="net")
    # Names without wnids, as transformers' models have them.
    labels = [name for _, name in pairs]
    assert match_classes(labels, ["n03126707", "n01440764"], 1000, option=None, where="net")[0] == [517, 0]


def test_names_that_fit_two_orders_are_refused_with_both(written):
    out_of_order = written("out_of_order.txt", "1 cat\n0 dog\n")
    assert match_classes(None, ["cat", "dog"], 2, option=out_of_order, where="net")[0] == [1, 0]
    # "1, cat" is the name of output 1, or two names of output 0.
    with pytest.raises(InputError, match=r"two orders.*cat is output 1, dog is output 0.*cat is output 0"):
        match_classes(None, ["cat", "dog"], 2, option=written("commas.txt", "1, cat\n0, dog\n"), where="net")
    # Digits by numbers: either may be the name.
    with pytest.raises(InputError, match=r"one order .*\(1, 2, 0\), and another.*\(2, 0, 1\)"):
        order_of_option(written("digits.json", '{"0": "1", "1": "2", "2": "0"}'))


def test_numbers_that_are_names_and_places_are_refused_with_both_and_the_option():
    with pytest.raises(InputError, match=r"0 is output 1, 1 is output 0\).*0 is output 0.*--labels position"):
        match_classes(["1", "0"], ["0", "1"], 2, option=None, where="net")
    assert match_classes(["1", "0"], ["0", "1"], 2, option="position", where="net")[0] == [0, 1]
    assert match_classes(["0", "1", "2"], ["0", "2"], 3, option=None, where="net")[0] == [0, 2]
    assert match_classes(["a", "b", "c"], ["0", "2"], 3, option=None, where="net")[0] == [0, 2]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("twice.json", '{"0": "cat", "1": "dog", "0": "fox"}', r"twice\.json: .*'0' stands twice"),
        ("twice.yaml", "names: {0: cat, 1: dog, 0: fox}", r"twice\.yaml: .*'0' stands twice"),
        ("bomb.yaml", BOMB, r"bomb\.yaml: .* is no name of an output"),
        ("twice.csv", "index,name\n0,cat\n0,dog\n", r"twice\.csv: 'cat' and 'dog' are both output 0"),
        ("gap.json", '{"0": "cat", "2": "dog"}', r"gap\.json: no name of output 1"),
        ("late.csv", "index,name\n5,cat\n6,dog\n", r"late\.csv: no name of output 0"),
        (
            "both.json",
            '{"id2label": {"0": "cat", "1": "dog"}, "label2id": {"cat": 1, "dog": 0}}',
            "id2label and label2id",
        ),
        ("values.json", '{"0": {"a": "b"}, "1": "dog"}', r"values\.json: .* is no name of an output"),
        ("none.json", '{"a": "b", "c": "d"}', r"none\.json: its keys a, c"),
        ("text.json", "cat, dog", r"text\.json: cannot be read as JSON"),
        ("text.yaml", "names: [cat", r"text\.yaml: cannot be read as YAML"),
        ("number.yaml", "3", r"number\.yaml: no list of names"),
        ("names.csv", "a,b\ncat,red\ndog,blue\n", r"names\.csv: no column numbers the outputs"),
        ("many.csv", "id,en,de\n0,cat,Katze\n1,dog,Hund\n", r"many\.csv: 2 columns may hold the names \(en, de\)"),
        ("rows.csv", "0,cat\n1\n", r"rows\.csv: rows of different lengths"),
        ("header.csv", "name\n", r"header\.csv: holds no names below its header"),
        ("blank.csv", "index,name\n0,cat\n1,\n", r"blank\.csv: '' is no name of an output"),
        ("null.yaml", "names: [cat, null, '', dog]", r"null\.yaml: names: '' is no name of an output"),
        ("null.json", '["cat", null]', r"null\.json: None is no name of an output"),
        ("cells.csv", ",,\n", r"cells\.csv: no column numbers the outputs"),
        ("empty.txt", "\n", r"empty\.txt: is empty"),
    ],
)
def test_files_that_name_no_outputs_are_refused(written, name, text, message):
    with pytest.raises(InputError, match=message) as refused:
        names_of_option(written(name, text))
    assert len(str(refused.value)) < 400


def test_an_empty_name_between_commas_is_refused():
    with pytest.raises(InputError, match=r"--labels cat,,dog: name 2 of 3 is empty"):
        names_of_option("cat,,dog")


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "names.txt").write_bytes(b"caf\xe9\n")
    with pytest.raises(InputError, match=r"names\.txt: cannot be read.*UTF-8"):
        names_of_option(str(tmp_path / "names.txt"))


def test_metadata_of_a_model_may_hold_names():
    assert names_in_metadata({"stride": "32", "names": "{0: 'cat', 1: 'no'}"}) == ("cat", "no")
    assert names_in_metadata({"names": "see the paper", "classes": "[cat"}) is None
