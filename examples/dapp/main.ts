import { privateKeyToAccount } from 'viem/accounts';
import { openCounter } from './counter.ts';

// Run it as the README says: `custos env` sets the variables.

const { CUSTOS_BASE_URL, CUSTOS_APP_ID, CUSTOS_APP_SECRET, CUSTOS_RPC_URL } = process.env;
if (!CUSTOS_BASE_URL || !CUSTOS_APP_ID || !CUSTOS_APP_SECRET || !CUSTOS_RPC_URL) {
  throw new Error('expected the variables of `custos env`');
}
const walletId = process.argv[2] ?? 'ext_wal_acme-ethereum';
const rpcUrl = `${CUSTOS_RPC_URL}/base`;
const settings = {
  baseUrl: CUSTOS_BASE_URL,
  appId: CUSTOS_APP_ID,
  appSecret: CUSTOS_APP_SECRET,
  rpcUrl,
  fetch,
};

// A key of this example, which gets its gas from the node, as from any development node.
const deployerKey = `0x${'d1'.repeat(32)}` as const;
const { address: deployer } = privateKeyToAccount(deployerKey);
const params = [deployer, '0xde0b6b3a7640000'];
await fetch(rpcUrl, {
  method: 'POST',
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'anvil_setBalance', params }),
});

const counter = await openCounter(settings, deployerKey);
process.stdout.write(`deployed at ${counter.address}, count ${await counter.read()}\n`);
const seen = Promise.withResolvers<void>();
await counter.watch((by, value) => {
  process.stdout.write(`event: ${by} counted to ${value}\n`);
  seen.resolve();
});
const { status, transactionHash } = await counter.incrementBy(walletId);
process.stdout.write(`${transactionHash}: ${status}, count ${await counter.read()}\n`);
await seen.promise;
await counter.close();
