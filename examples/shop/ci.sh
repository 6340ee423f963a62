#!/bin/sh
# The pipeline of the shop: its tests, then one refund in a sandbox behind `custos verify`. Reports are in reports/.
set -eu
rm -rf reports
mkdir reports
vitest run --testTimeout=30000 --reporter=default --reporter=junit --outputFile=reports/tests.xml
exec custos exec --seed shop --seed-data -- sh -euc '
  custos faucet ext_wal_acme-ethereum 1
  custos faucet ext_wal_acme-ethereum 100 --asset usdc
  custos verify --target "$CUSTOS_BASE_URL" --target-ca "$CUSTOS_CA_FILE" --port 0 --ready-file reports/proxy.json \
    --format text --format junit=reports/contract.xml &
  verify=$!
  timeout 60 sh -c "until [ -s reports/proxy.json ]; do sleep 0.1; done"
  read_proxy() { node -p "require(\"./reports/proxy.json\").$1"; }
  CUSTOS_BASE_URL=$(read_proxy base_url) NODE_EXTRA_CA_CERTS=$(read_proxy ca_file) \
    node refund.ts 2041 0x742D35CC6634c0532925A3b844BC9E7595F0BEb0 12.5
  kill "$(read_proxy pid)"
  wait "$verify"
  custos coverage --format text --format html=reports/coverage.html --format junit=reports/coverage.xml'
