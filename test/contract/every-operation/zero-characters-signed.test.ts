import { hashMessage, keccak256, recoverAddress, recoverMessageAddress, toHex } from 'viem';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { call, refusal } from '../../support/call.ts';
import { authorize } from '../../support/intents.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

// Texts that are only signed may contain U+0000, also where the body is stored: with a denial, a use or an intent. PostgreSQL
// cannot store the character, so no column may contain it. The judges are viem and eth-sig-util.

const text = 'a\0🚀é';
let sandbox: TestSandbox;
let wallet: Wallet;
beforeAll(async () => {
  sandbox = await startSandbox();
  wallet = (await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } })).body;
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const personal = { method: 'personal_sign', params: { message: text, encoding: 'utf-8' } } as const;
const typed = {
  method: 'eth_signTypedData_v4',
  params: {
    typed_data: {
      domain: { name: text },
      types: { Text: [{ name: 'v\0', type: 'string' }] },
      primary_type: 'Text',
      message: { 'v\0': text },
    },
  },
} as const;

async function signature(of: Wallet, body: object): Promise<`0x${string}`> {
  const input = { path: { wallet_id: of.id }, body: body as never };
  const { data } = (await call(sandbox, 'walletRpc', input)).body as { data: { signature: `0x${string}` } };
  return data.signature;
}

test('a personal message is signed with it', async () => {
  const signed = await signature(wallet, personal);
  expect(await recoverMessageAddress({ message: text, signature: signed })).toBe(wallet.address);
});

test('typed data is signed with it', async () => {
  // eth-sig-util 9.0.0, V4
  const digest = '0xcafa32b9f65b8e0a18a4f7434186ce224f0364b59e5a88993beb131d08bad9e5';
  expect(await recoverAddress({ hash: digest, signature: await signature(wallet, typed) })).toBe(
    wallet.address,
  );
});

test('bytes that are text, and a message for an identity key, are signed with it', async () => {
  const params = { bytes: text, encoding: 'utf-8', hash_function: 'keccak256' } as const;
  const { data } = (
    await call(sandbox, 'rawSignWallet', { path: { wallet_id: wallet.id }, body: { params } })
  ).body;
  const hash = keccak256(toHex(text));
  expect(await recoverAddress({ hash, signature: data.signature as `0x${string}` })).toBe(wallet.address);

  const spark = (await call(sandbox, 'createWallet', { body: { chain_type: 'spark' } })).body;
  const signed = await signature(spark, { method: 'signMessageWithIdentityKey', params: { message: text } });
  const other = await signature(spark, { method: 'signMessageWithIdentityKey', params: { message: 'a🚀é' } });
  expect(signed).not.toBe(other);
});

test('a denial, whose body and trace are stored, is a denial', async () => {
  const condition = { field_source: 'message', field: 'content', operator: 'eq', value: 'hello' } as const;
  const { body: policy } = await call(sandbox, 'createPolicy', {
    body: {
      version: '1.0',
      name: 'hello only',
      chain_type: 'ethereum',
      rules: [{ name: 'hello', method: 'personal_sign', action: 'ALLOW', conditions: [condition] }],
    } as never,
  });
  const body = { chain_type: 'ethereum' as const, policy_ids: [policy.id] };
  const guarded = (await call(sandbox, 'createWallet', { body })).body;
  for (const request of [personal, typed]) {
    const { body: refused } = await refusal(sandbox, 'walletRpc', {
      path: { wallet_id: guarded.id },
      body: request,
    });
    expect(refused.code).toBe('policy_violation');
  }
});

test('an intent is stored, shown and executed with it', async () => {
  const body = { chain_type: 'ethereum', owner: { public_key: aliceKey.publicKey } } as const;
  const owned = (await call(sandbox, 'createWallet', { body })).body;
  const path = { wallet_id: owned.id };
  const { body: intent } = await call(sandbox, 'createWalletRpcIntent', { path, body: personal });
  expect(intent.request_details).toMatchObject({ body: personal });
  const done = await authorize(sandbox, intent, aliceKey.privateKey);
  const { response_body } = done.action_result as { response_body: { data: { signature: `0x${string}` } } };
  const hash = hashMessage(text);
  expect(await recoverAddress({ hash, signature: response_body.data.signature })).toBe(owned.address);
});

test('elsewhere in the same bodies it is refused', async () => {
  const path = { wallet_id: wallet.id };
  const { body } = await refusal(sandbox, 'walletRpc', { path, body: { ...personal, address: text } });
  expect(body.data?.issues).toEqual([
    { in: 'body', pointer: '/address', message: 'must not contain U+0000' },
  ]);
});

test('no column of the database contains it', async () => {
  const em = sandbox.database.orm.em.fork();
  const tables = await em.execute<{ name: string }[]>("select name from sqlite_master where type = 'table'");
  let rows = 0;
  for (const { name } of tables) {
    for (const row of await em.execute<Record<string, unknown>[]>(`select * from "${name}"`)) {
      rows += 1;
      for (const [column, value] of Object.entries(row)) {
        const hasIt = typeof value === 'string' && value.includes('\0');
        expect(hasIt, `${name}.${column}`).toBe(false);
      }
    }
  }
  expect(rows).toBeGreaterThan(20);
});
