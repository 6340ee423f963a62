import { expect, test } from 'vitest';
import { aliceKey, bobKey, carolKey } from '../../../../mocks/authorization-keys.ts';
import type { Tables } from '../../../../src/domain/tables.ts';
import { call } from '../../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../../support/sandbox.ts';
import { makeRecipient } from '../../wallets/keys/hpke-client.ts';
import {
  allow,
  allowed,
  denied,
  deny,
  hello,
  makePolicy,
  makeWallet,
  outcome,
  payment,
  type Rule,
} from './policies.ts';

const quorumOf = async (sandbox: TestSandbox, key: { publicKey: string }) =>
  (await call(sandbox, 'createKeyQuorum', { body: { public_keys: [key.publicKey] } })).body.id;

test('the signer of a request determines the policy', async () => {
  await using sandbox = await startSandbox();
  const [bob, carol] = [await quorumOf(sandbox, bobKey), await quorumOf(sandbox, carolKey)];
  const payments = await makePolicy(sandbox, 'ethereum', [allow('eth_signTransaction')]);
  const owner = { public_key: aliceKey.publicKey };
  const walletWith = (additional_signers: object[]) =>
    makeWallet(sandbox, 'ethereum', {
      owner,
      rules: [allow('personal_sign')],
      additional_signers: additional_signers as never,
    });
  const judge = async (wallet: { id: string }, ...signers: { privateKey: string }[]) => {
    const signWith = signers.map(({ privateKey }) => privateKey);
    const message = await outcome(sandbox, 'walletRpc', { wallet, body: hello, signWith });
    const paid = await outcome(sandbox, 'walletRpc', { wallet, body: payment({ gas_limit: 1 }), signWith });
    return { message, paid };
  };
  const onlyMessages = { message: allowed, paid: denied };
  const onlyPayments = { message: denied, paid: allowed };
  const both = { message: allowed, paid: allowed };

  const overridden = await walletWith([{ signer_id: bob, override_policy_ids: [payments] }]);
  expect(await judge(overridden, aliceKey)).toEqual(onlyMessages);
  expect(await judge(overridden, bobKey)).toEqual(onlyPayments);
  // The owner takes precedence, whatever the order of the signatures.
  expect(await judge(overridden, bobKey, aliceKey)).toEqual(onlyMessages);
  const stranger = '401 zero_correct_authorization_signatures';
  expect(await judge(overridden, carolKey)).toEqual({ message: stranger, paid: stranger });

  expect(await judge(await walletWith([{ signer_id: bob }]), bobKey)).toEqual(onlyMessages);
  expect(await judge(await walletWith([{ signer_id: bob, override_policy_ids: [] }]), bobKey)).toEqual(both);

  const two = await walletWith([
    { signer_id: bob, override_policy_ids: [payments] },
    { signer_id: carol, override_policy_ids: [] },
  ]);
  expect(await judge(two, carolKey)).toEqual(both);
  // Of several signers, the first in the list of the wallet.
  expect(await judge(two, carolKey, bobKey)).toEqual(onlyPayments);
});

test('without an owner the policy of the wallet applies to every caller', async () => {
  await using sandbox = await startSandbox();
  const wallet = await makeWallet(sandbox, 'ethereum', {
    rules: [allow('personal_sign')],
    additional_signers: [{ signer_id: await quorumOf(sandbox, bobKey), override_policy_ids: [] }],
  });
  for (const signWith of [[], [bobKey.privateKey]]) {
    expect(await outcome(sandbox, 'walletRpc', { wallet, body: hello, signWith })).toBe(allowed);
    expect(await outcome(sandbox, 'walletRpc', { wallet, body: payment({}), signWith })).toBe(denied);
  }
});

test('a change of the policy takes effect immediately', async () => {
  await using sandbox = await startSandbox();
  const wallet = await makeWallet(sandbox, 'ethereum', { rules: [allow('personal_sign')] });
  const [policy_id = ''] = wallet.policy_ids;
  expect(await outcome(sandbox, 'walletRpc', { wallet, body: hello })).toBe(allowed);
  await call(sandbox, 'createPolicyRule', { path: { policy_id }, body: deny('personal_sign') as never });
  expect(await outcome(sandbox, 'walletRpc', { wallet, body: hello })).toBe(denied);
  await call(sandbox, 'updatePolicy', {
    path: { policy_id },
    body: { rules: [allow('personal_sign')] as never },
  });
  expect(await outcome(sandbox, 'walletRpc', { wallet, body: hello })).toBe(allowed);
  await call(sandbox, 'updateWallet', { path: { wallet_id: wallet.id }, body: { policy_ids: [] } });
  expect(await outcome(sandbox, 'walletRpc', { wallet, body: payment({}) })).toBe(allowed);
});

test.each(['exportWallet', 'walletRpc'] as const)('%s: an export needs its own rule', async (operation) => {
  await using sandbox = await startSandbox();
  const params = { encryption_type: 'HPKE', recipient_public_key: makeRecipient().spki };
  const requestOf = (isPhrase: boolean, address: string) =>
    operation === 'exportWallet'
      ? { ...params, export_seed_phrase: isPhrase }
      : { method: isPhrase ? 'exportSeedPhrase' : 'exportPrivateKey', address, params };
  const judge = async (...rules: Rule[]) => {
    const wallet = await makeWallet(sandbox, 'ethereum', { rules });
    const [key, phrase] = [requestOf(false, wallet.address), requestOf(true, wallet.address)];
    const answers = [
      await outcome(sandbox, operation, { wallet, body: key }),
      await outcome(sandbox, operation, { wallet, body: phrase }),
    ];
    const { body } = await call(sandbox, 'getWallet', { path: { wallet_id: wallet.id } });
    return [...answers, body.exported_at === null ? 'unmarked' : 'marked'];
  };
  expect(await judge(allow('personal_sign'))).toEqual([denied, denied, 'unmarked']);
  expect(await judge(allow('exportPrivateKey'))).toEqual([allowed, denied, 'marked']);
  expect(await judge(allow('exportSeedPhrase'))).toEqual([denied, allowed, 'marked']);
  expect(await judge(allow('*'), deny('exportPrivateKey'))).toEqual([denied, allowed, 'marked']);
  expect(await judge(allow('*'), deny('*'))).toEqual([denied, denied, 'unmarked']);
});

test('a denial is not stored under the idempotency key, a response is', async () => {
  await using sandbox = await startSandbox();
  const wallet = await makeWallet(sandbox, 'ethereum', { rules: [] });
  const [policy_id = ''] = wallet.policy_ids;
  const sent = { wallet, body: payment({ nonce: 1 }), idempotencyKey: 'once' };
  const recordsKept = async () =>
    (
      await sandbox.database.orm.em
        .fork()
        .getKysely<Tables>()
        .selectFrom('idempotency_records')
        .select('key')
        .execute()
    ).length;
  expect(await outcome(sandbox, 'walletRpc', sent)).toBe(denied);
  expect(await outcome(sandbox, 'walletRpc', sent)).toBe(denied);
  expect(await recordsKept()).toBe(0);
  await call(sandbox, 'updatePolicy', {
    path: { policy_id },
    body: { rules: [allow('eth_signTransaction')] as never },
  });
  expect(await outcome(sandbox, 'walletRpc', sent)).toBe(allowed);
  expect(await recordsKept()).toBe(1);
  // A stored response is replayed, whatever the current policy.
  await call(sandbox, 'updatePolicy', { path: { policy_id }, body: { rules: [] } });
  expect(await outcome(sandbox, 'walletRpc', sent)).toBe(allowed);
  expect(await outcome(sandbox, 'walletRpc', { ...sent, body: payment({ nonce: 2 }) })).toBe(
    '400 invalid_data',
  );

  const raw = { wallet, body: { params: { hash: `0x${'11'.repeat(32)}` } }, idempotencyKey: 'twice' };
  expect(await outcome(sandbox, 'rawSignWallet', raw)).toBe(denied);
  await call(sandbox, 'updatePolicy', { path: { policy_id }, body: { rules: [allow('*')] as never } });
  expect(await outcome(sandbox, 'rawSignWallet', raw)).toBe(allowed);
});
