import pytest

from crds import names
from service.decide import manifests, template
from service.decide.world import Role
from tests.service.decide.builders import child, machine, running_world, spec
from tests.service.decide.simulation import running

TEMPLATE = {"labels": {"rack": "4"}, "annotations": {"note": "by the window"}}


def of(**parts):
    return spec(machineTemplate=parts or None)


@pytest.mark.parametrize("empty", [None, {}, {"labels": {}}])
def test_without_a_template_nothing_is_noted(empty):
    assert template.at_creation(spec(machineTemplate=empty)) == ({}, {})


def test_the_keys_of_a_template_are_noted_on_the_machine():
    labels, annotations = template.at_creation(of(**TEMPLATE))
    assert (labels, annotations["note"]) == (TEMPLATE["labels"], "by the window")
    assert annotations[names.ANNOTATION_TEMPLATE] == '{"labels":["rack"],"annotations":["note"]}'


@pytest.mark.parametrize("note", ["", "{", "[]", '{"labels": 5}', '"text"', "[" * 5000])
def test_a_mangled_note_takes_nothing_away(note):
    wanted = template.on_machine(of(), {names.ANNOTATION_TEMPLATE: note})
    assert wanted.labels == {}
    assert wanted.annotations == {names.ANNOTATION_TEMPLATE: None}


def test_an_edited_template_is_brought_up_to_date_in_place_and_what_it_lost_goes():
    sim = running()
    sim.edit(machineTemplate=TEMPLATE)
    sim.settle()
    metadata = sim.objects[Role.MACHINE]["metadata"]
    assert (metadata["labels"]["rack"], metadata["annotations"]["note"]) == ("4", "by the window")
    sim.edit(machineTemplate={"labels": {"row": "2"}})
    sim.settle()
    assert "rack" not in metadata["labels"]
    assert "note" not in metadata["annotations"]
    assert metadata["labels"]["row"] == "2"
    sim.edit(machineTemplate=None)
    sim.settle()
    assert not {"row", names.ANNOTATION_TEMPLATE} & {*metadata["labels"], *metadata["annotations"]}
    assert metadata["labels"][names.LABEL_OWNER] == "desk"


def test_a_label_that_the_controller_sets_itself_survives_the_removal_of_the_template():
    noted = {names.ANNOTATION_TEMPLATE: '{"labels":["app.kubernetes.io/managed-by"]}'}
    annotations = {**child(Role.MACHINE).annotations, **noted}
    (patch,) = manifests.repairs(spec(), running_world(machine=machine(of={"annotations": annotations})))
    assert patch.body == {"metadata": {"annotations": {names.ANNOTATION_TEMPLATE: None}}}
