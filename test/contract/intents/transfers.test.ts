import { afterAll, beforeAll, expect, test } from 'vitest';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import type { IntentResponse, TransferActionResponse, Wallet } from '../../../src/generated/schemas.ts';
import { call, refusal } from '../../support/call.ts';
import { chain, fund } from '../../support/fund.ts';
import { authorize, intentEvents, readIntent } from '../../support/intents.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { waitSeconds } from '../../support/wait-seconds.ts';
import { allow, makePolicy } from '../policies/enforced/policies.ts';
import { alice, bob, payment, treasury, worldOf } from './world.ts';

const receiver = payment('1').destination.address;
const usdcOnBase = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const nonce = 'treasury-2025-11-21-000042';

let sandbox: TestSandbox;
let world: ReturnType<typeof worldOf>;
beforeAll(async () => {
  sandbox = await startSandbox();
  world = worldOf(sandbox);
});
afterAll(() => sandbox[Symbol.asyncDispose]());

/** A wallet of two of three, with gas and 10 USDC on Base. */
async function makeWallet(extra: object = {}): Promise<Wallet> {
  const wallet = await world.wallet(extra);
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'usdc', rawAmount: 10_000_000n });
  return wallet;
}

async function propose(wallet: Wallet, body: object): Promise<IntentResponse> {
  const path = { wallet_id: wallet.id };
  return (await call(sandbox, 'createWalletTransferIntent', { path, body: body as never })).body;
}

const wait = (seconds: number) => waitSeconds(sandbox, seconds);

async function actionsOf(wallet: Wallet): Promise<TransferActionResponse[]> {
  const { body } = await call(sandbox, 'listWalletActions', { path: { wallet_id: wallet.id } });
  return body.data as TransferActionResponse[];
}

const received = async () =>
  (await sandbox.chains.find(chain('base').caip2)?.balances(receiver, [usdcOnBase]))?.[0] ?? 0n;
const typesOf = async (intent: IntentResponse) =>
  (await intentEvents(sandbox, intent.intent_id)).map(({ type }) => type);

test('the last signature starts the transfer, and its outcome settles the intent', async () => {
  const wallet = await makeWallet();
  const intent = await propose(wallet, payment('1.5'));
  const before = await received();
  expect((await authorize(sandbox, intent, alice)).status).toBe('pending');
  expect(await actionsOf(wallet)).toEqual([]);
  const agreedMs = sandbox.clock.now();
  const begun = await authorize(sandbox, intent, bob);
  expect(begun.status).toBe('processing');
  expect(begun).not.toHaveProperty('action_result');
  expect(await actionsOf(wallet)).toMatchObject([{ status: 'pending' }]);
  expect(await typesOf(intent)).toEqual(['intent.created', 'intent.authorized', 'intent.authorized']);

  await wait(10);
  const done = await readIntent(sandbox, intent);
  const [action] = await actionsOf(wallet);
  expect(action).toMatchObject({ status: 'succeeded', source_amount: '1.5', destination_amount: '1.5' });
  const result = {
    status_code: 200,
    executed_at: agreedMs,
    authorized_by_id: wallet.owner_id,
    authorized_by_display_name: 'Treasury',
    response_body: action,
  };
  expect([done.status, done.action_result]).toEqual(['executed', result]);
  const [reported] = (await intentEvents(sandbox, intent.intent_id)).slice(-1);
  expect(reported).toMatchObject({ type: 'intent.executed', status: 'executed', action_result: result });
  expect((await received()) - before).toBe(1_500_000n);
  // Nothing settles it a second time.
  await wait(600);
  expect((await typesOf(intent)).filter((type) => type === 'intent.executed')).toHaveLength(1);
});

test('while it is processing it cannot be signed, rejected or dismissed', async () => {
  const wallet = await makeWallet({ owner: { public_key: aliceKey.publicKey } });
  const intent = await propose(wallet, {
    ...payment('1'),
    destination: { address: '0x00000000000000000000000000000000dead0001' },
  });
  expect((await authorize(sandbox, intent, alice)).status).toBe('processing');
  // The transaction is stuck, so the intent is not settled, however long it takes.
  await wait(10 * 60);
  expect((await readIntent(sandbox, intent)).status).toBe('processing');
  const path = { intent_id: intent.intent_id };
  expect((await refusal(sandbox, 'rejectIntent', { path })).body.code).toBe('invalid_state');
  const other = await propose(wallet, payment('2'));
  expect((await authorize(sandbox, other, alice)).status).toBe('processing');
  expect((await readIntent(sandbox, intent)).status).toBe('processing');
});

test('a transfer that fails on its chain fails the intent', async () => {
  const wallet = await makeWallet({ owner: { public_key: aliceKey.publicKey } });
  const intent = await propose(wallet, {
    ...payment('1'),
    destination: { address: '0x00000000000000000000000000000000dead0003' },
  });
  expect((await authorize(sandbox, intent, alice)).status).toBe('processing');
  for (let minute = 0; minute < 30; minute += 1) await wait(60);
  const [action] = await actionsOf(wallet);
  expect(action).toMatchObject({ status: 'failed', failure_reason: { message: expect.any(String) } });
  const done = await readIntent(sandbox, intent);
  expect([done.status, done.action_result]).toEqual([
    'failed',
    {
      status_code: 400,
      executed_at: expect.any(Number),
      authorized_by_id: wallet.owner_id,
      response_body: {
        error: action?.failure_reason?.message,
        code: 'transaction_execution_failure',
        data: { wallet_action_id: action?.id },
      },
    },
  ]);
  expect(await typesOf(intent)).toEqual(['intent.created', 'intent.authorized', 'intent.failed']);
});

test('a transfer that is refused on execution fails immediately and moves nothing', async () => {
  const atMostTwo = {
    field_source: 'action_request_body',
    field: 'source.amount',
    operator: 'lte',
    value: '2',
  };
  const policy = await makePolicy(sandbox, 'ethereum', [allow('transfer', atMostTwo as never)]);
  const wallet = await makeWallet({ owner: { public_key: aliceKey.publicKey }, policy_ids: [policy] });
  const before = await received();
  const end = async (body: object) => {
    const intent = await propose(wallet, body);
    const { status, action_result } = await authorize(sandbox, intent, alice);
    const { response_body: answer } = action_result as { response_body: { code?: string } };
    return `${status} ${answer.code}`;
  };
  expect(await end(payment('3'))).toBe('failed policy_violation');
  // A token of which the wallet has none.
  expect(await end({ ...payment('1'), source: { asset: 'eurc', chain: 'base', amount: '1' } })).toBe(
    'failed insufficient_funds',
  );
  const paid = await propose(wallet, { ...payment('1'), nonce });
  expect((await authorize(sandbox, paid, alice)).status).toBe('processing');
  // The nonce prevents a second execution by any way.
  expect(await end({ ...payment('1'), nonce })).toBe('failed resource_conflict');
  await wait(10);
  expect((await readIntent(sandbox, paid)).status).toBe('executed');
  expect((await received()) - before).toBe(1_000_000n);
  expect(await actionsOf(wallet)).toHaveLength(1);
});

test('an additional signer can authorize it instead of the owner', async () => {
  const signer = await world.quorum({ ...treasury, authorization_threshold: 1 });
  const wallet = await makeWallet({ additional_signers: [{ signer_id: signer.id }] });
  const intent = await propose(wallet, payment('1'));
  expect(intent.authorization_details).toHaveLength(2);
  expect((await authorize(sandbox, intent, bob)).status).toBe('processing');
  await wait(10);
  const { status, action_result: result } = await readIntent(sandbox, intent);
  expect([status, result?.authorized_by_id]).toEqual(['executed', signer.id]);
});
