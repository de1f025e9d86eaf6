"""Which code a configuration may name as an architecture."""

import pytest
from torch import nn

from gfscore.core.errors import InputError
from gfscore.networks.architecture_files import FOLDER_VARIABLE, source_file_of
from gfscore.networks.callables import build_architecture, resolve
from helpers.networks import FLAT_DEFINITION

pytestmark = pytest.mark.usefixtures("architectures")


def test_the_projects_own_architectures_are_found(architectures, tmp_path, monkeypatch):
    assert build_architecture("architectures.mine:Flat", {"classes": 7}).linear.out_features == 7
    assert isinstance(build_architecture("architectures.mine:flat", {}), nn.Module)
    assert isinstance(build_architecture("architectures.deep.other:Deeper", {}), nn.Module)
    assert source_file_of("architectures.mine:Flat") == architectures / "mine.py"
    assert source_file_of("torchvision.models:resnet18") is None
    (architectures / "deep.py").write_text("")
    (architectures / "deep" / "__init__.py").write_text("")
    assert source_file_of("architectures.deep:net") == architectures / "deep" / "__init__.py"
    second = tmp_path / "second"
    second.mkdir()
    (second / "mine.py").write_text(FLAT_DEFINITION.replace("classes=4", "classes=9"))
    monkeypatch.setenv(FOLDER_VARIABLE, str(second))
    assert build_architecture("architectures.mine:Flat", {}).linear.out_features == 9


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("torchvision.models:squeezenet1_0", {"num_classes": 3}, "SqueezeNet"),
        ("torchvision.models.squeezenet:squeezenet1_0", {"num_classes": 3}, "SqueezeNet"),
        ("timm:test_vit", {"num_classes": 3}, "VisionTransformer"),
        ("timm.models.resnet:resnet18", {"num_classes": 3}, "ResNet"),
        ("torch.nn:Linear", {"in_features": 1, "out_features": 2}, "Linear"),
        ("robustbench.model_zoo.architectures.wide_resnet:WideResNet", {"depth": 10, "widen_factor": 1}, "WideResNet"),
    ],
)
def test_networks_that_packages_list_are_found(name, arguments, kind):
    assert type(build_architecture(name, arguments)).__name__ == kind


@pytest.mark.parametrize(
    "name",
    [
        *("os:system", "builtins:eval", "subprocess:run", "importlib.metadata:version", "pickle:loads"),
        *("outside:main", "gfscore.core.files:write_text", "joblib:load", "numpy:array"),
        *("torch:load", "torch.hub:load", "torch:Tensor", "torch.fx:GraphModule", "torch.jit:ScriptModule"),
        *("torch.nn.utils:clip_grad_norm_", "torch.nn:functional", "torch.nn:no_such"),
        *("timm.models:load_checkpoint", "timm.models.vgg:resnet18", "timm:no_such"),
        *("torchvision.models:get_model", "torchvision.models.detection:fasterrcnn_resnet50_fpn"),
        *("torchvision.models.feature_extraction:DualGraphModule", "torchvision.models:no_such"),
        *("robustbench.utils:load_model", "robustbench.model_zoo.architectures.deit:create_model"),
        *("robustbench.model_zoo.architectures.no_such:Net", "robustbench.model_zoo.architectures.wide_resnet:torch"),
        *("architectures.mine:Absent", "architectures.mine:VALUE", "architectures.mine:os"),
        *("architectures.borrowed:check_output", "architectures.borrowed:system", "architectures.borrowed:Linear"),
    ],
)
def test_a_config_can_name_nothing_else(name, architectures, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    imports = "from subprocess import check_output\nfrom os import system\nfrom torch.nn import Linear\n"
    (architectures / "borrowed.py").write_text(imports)
    with pytest.raises(InputError, match=f"{name}: .*; allowed are"):
        resolve(name)
    assert not (tmp_path / "it-ran").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("architectures.absent:Net", r"no such file in .*architectures/; put absent\.py there"),
        ("architectures:Net", "no such file"),
        ("architectures.mine:number", "returns a int; name one that returns a torch.nn.Module"),
        ("architectures.mine:broken", "cannot be built with .*no luck"),
        ("architectures.faulty:Net", r"architectures\.faulty cannot be imported .*no_such_package"),
        ("../outside:main", "not of the form package.module:callable"),
        ("os.system", "not of the form"),
        ("a:b:c", "not of the form"),
        ("architectures.mine:Flat.forward", "not of the form"),
        ("architectures..outside:main", "not of the form"),
    ],
)
def test_what_is_wrong_with_a_name_is_said(name, message, architectures, tmp_path):
    (architectures / "faulty.py").write_text("import no_such_package\n")
    with pytest.raises(InputError, match=message):
        build_architecture(name, {})
    assert not (tmp_path / "it-ran").exists()


def test_a_link_out_of_the_folder_is_refused(architectures, tmp_path):
    (architectures / "linked.py").symlink_to(tmp_path / "outside.py")
    with pytest.raises(InputError, match="no such file in"):
        resolve("architectures.linked:main")
    assert not (tmp_path / "it-ran").exists()


def test_arguments_that_fetch_weights_or_do_not_exist_are_refused():
    with pytest.raises(InputError, match="argument 'weights' would download weights; remove it, they come from `path`"):
        build_architecture("torchvision.models:resnet18", {"weights": "DEFAULT"})
    with pytest.raises(InputError, match=r"cannot be built with .*unexpected keyword argument 'depth'"):
        build_architecture("architectures.mine:Flat", {"depth": 3})
