#!/bin/sh
# Makes an overlay for each host of a list, and the kustomization.yaml that names them all; to be run beside the folder base.
# Each line of the input is a number and an address: 7 10.20.3.7
set -eu

names=""
while read -r desk address || [ -n "$desk" ]; do # the last line may lack its end
  [ -n "$desk" ] || continue
  mkdir -p "desk-$desk"
  cat > "desk-$desk/kustomization.yaml" <<END
resources: [../base]
nameSuffix: "-$desk"
patches:
  - target: {kind: ScheduledMachine}
    patch: |
      - {op: add, path: /spec/parameters, value: {address: "$address"}}
END
  names="${names:+$names, }desk-$desk"
done
echo "resources: [$names]" > kustomization.yaml
