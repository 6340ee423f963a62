import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { aliceKey, bobKey } from '../../mocks/authorization-keys.ts';
import type { OperationId } from '../../src/generated/operations.ts';
import { chainStoreSteps } from '../../src/sandbox/simulated/chains/store-schema.ts';
import { migrations } from '../../src/storage/migrations/migrations.ts';
import { attempt, call } from '../support/call.ts';
import { fund } from '../support/fund.ts';
import { authorize } from '../support/intents.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { type RecordedCall, type ReleasedData, readSqliteFile, writeReleasedData } from './released-data.ts';

// Run at each release that has new migrations: `node test/released-data/write.ts` writes what this version stores and
// answers, under the name of its newest migration. What was written for earlier releases is never changed.

const message = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } } as const;
const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';

/** Makes a bit of everything; returns the calls whose responses later versions must give, too. */
async function fill(sandbox: TestSandbox): Promise<Omit<RecordedCall, 'status' | 'answer'>[]> {
  const wallet = { wallet_id: 'ext_wal_acme-ethereum' };
  const { body: acme } = await call(sandbox, 'getWallet', { path: wallet });
  const { body: treasury } = await call(sandbox, 'getWallet', { path: { wallet_id: 'ext_wal_treasury' } });

  const { body: taproot } = await call(sandbox, 'createWallet', { body: { chain_type: 'bitcoin-taproot' } });
  const { body: user } = await call(sandbox, 'createUser', {
    body: {
      linked_accounts: [
        { type: 'email', address: 'zoe@example.com' },
        { type: 'custom_auth', custom_user_id: 'customer-7' },
      ],
      wallets: [{ chain_type: 'solana' }],
      custom_metadata: { plan: 'gold', seats: 3 },
    },
  });
  const { body: account } = await call(sandbox, 'createAccount', {
    body: { display_name: 'Zoë’s two', wallet_ids: [acme.id, treasury.id] },
  });
  const { body: set } = await call(sandbox, 'createConditionSet', { body: { name: 'Known receivers' } });
  const inSet = { condition_set_id: set.id };
  await call(sandbox, 'addConditionSetItems', { path: inSet, body: [{ value: receiver }] });
  const { body: quorum } = await call(sandbox, 'createKeyQuorum', {
    body: { public_keys: [aliceKey.publicKey, bobKey.publicKey], authorization_threshold: 2 },
  });
  const { body: organization } = await call(sandbox, 'createOrganization', {
    body: { display_name: 'Acme Europe', default_key_quorum_id: quorum.id },
  });
  const allowlist = { app_id: sandbox.appId };
  await call(sandbox, 'createAllowlistEntry', {
    path: allowlist,
    body: { type: 'email', value: 'early@example.com' },
  });
  const denied = { wallet_id: treasury.id };
  const { body: intent } = await call(sandbox, 'createWalletRpcIntent', { path: denied, body: message });
  await authorize(sandbox, intent, aliceKey.privateKey);

  // Nothing listens on this port, so deliveries wait for their next attempt.
  const { body: endpoint } = await call(sandbox, 'createWebhookEndpoint', {
    body: { url: 'http://127.0.0.1:9/webhooks' },
  });
  await fund(sandbox, acme.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
  sandbox.clock.advance(10_000);
  const { body: transfer } = await call(sandbox, 'transferFromWallet', {
    path: wallet,
    body: {
      source: { asset: 'eth', chain: 'base', amount: '0.25' },
      destination: { address: receiver },
      reference_id: 'invoice-9',
    } as never,
  });
  for (let minute = 0; minute < 5; minute += 1) {
    await sandbox.settle();
    sandbox.clock.advance(60_000);
  }
  await call(
    sandbox,
    'createWallet',
    { body: { chain_type: 'stellar' } },
    { idempotencyKey: '7d1c3c5e-6f0f-4a52-a2ab-0d3bb5f2a4ee' },
  );
  await sandbox.settle();

  const read = (operation: OperationId, path?: object, query?: object) => ({
    operation,
    ...(path && { path }),
    ...(query && { query }),
  });
  return [
    read('getWallet', wallet),
    read('listWallets'),
    read('getWalletBalance', wallet, { asset: 'eth', chain: 'base' }),
    read('getWalletAction', { ...wallet, action_id: transfer.id }),
    read('listWalletActions', wallet),
    { ...read('walletRpc', wallet), body: message },
    {
      ...read('rawSignWallet', { wallet_id: taproot.id }),
      body: { params: { hash: `0x${'2a'.repeat(32)}` } },
    },
    // Held to a policy and owned by two of three.
    { ...read('walletRpc', denied), body: message },
    read('getUser', { user_id: user.id }),
    { operation: 'getUserByEmailAddress', body: { address: 'zoe@example.com' } },
    { operation: 'getUserByCustomAuthID', body: { custom_user_id: 'customer-7' } },
    read('listUsers'),
    read('getAccount', { account_id: account.id }),
    read('getConditionSet', inSet),
    read('listConditionSetItems', inSet),
    read('getKeyQuorum', { key_quorum_id: quorum.id }),
    read('getOrganization', { organization_id: organization.id }),
    read('listAllowlistEntries', allowlist),
    read('getIntent', { intent_id: intent.intent_id }),
    read('listIntents'),
    read('getPolicy', { policy_id: treasury.policy_ids[0] }),
    read('getWebhookEndpoint', { endpoint_id: endpoint.id }),
    read('listWebhookDeliveries', { endpoint_id: endpoint.id }),
    read('getApp', allowlist),
    read('getAppJwks', allowlist),
  ];
}

const dataFolder = mkdtempSync(join(tmpdir(), 'custos-released-'));
try {
  const sandbox = await startSandbox({ dataFolder });
  const calls: RecordedCall[] = [];
  for (const each of await fill(sandbox)) {
    const { status, body: answer } = await attempt(sandbox, each.operation, each);
    if (status >= 500) throw new Error(`${each.operation} answered ${status} ${JSON.stringify(answer)}`);
    calls.push({ ...each, status, answer });
  }
  const nowMs = sandbox.clock.now();
  await sandbox[Symbol.asyncDispose]();
  const data: ReleasedData = {
    memory: JSON.parse(readFileSync(join(dataFolder, 'sandbox.json'), 'utf8')),
    nowMs,
    database: readSqliteFile(join(dataFolder, 'custos.sqlite'), migrations.length),
    chains: readSqliteFile(join(dataFolder, 'chain.sqlite'), chainStoreSteps.length),
    calls,
  };
  writeReleasedData(migrations.at(-1)!.name, data);
} finally {
  rmSync(dataFolder, { recursive: true });
}
