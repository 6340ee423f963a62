import { beforeEach, describe, expect, test } from 'vitest';
import { systemEntropy } from '../../../src/adapters/runtime.ts';
import { agreementOf } from '../../../src/domain/requests/intents/intent-view.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import { readEvidence } from '../../../src/engine/authorization/signed-evidence.ts';
import type { IntentResponse } from '../../../src/generated/schemas.ts';
import { createKeyStore } from '../../../src/keys/key-operations.ts';
import { localMasterKey } from '../../../src/keys/master-keys.ts';
import { messagePolicy } from '../../contract/policies/rules.ts';
import { databaseKinds } from '../../support/databases.ts';
import type { TestOperations } from '../../support/run-operations.ts';
import { clientsOf, inDatabase, type Key, keyOf, openLogins } from '../../support/signer/login-clients.ts';
import { newOwner, payloadOf } from '../../support/signer/owner.ts';

// What the signer judges changes between the signature of one member and that of the last one. The server has to see
// the same, and answers what the contract says; an error of the key store would fail the test.

const hello = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };
const device = keyOf(newOwner());

describe.each(databaseKinds)('on %s', (kind) => {
  let server: TestOperations;
  let clients: ReturnType<typeof clientsOf>;
  let annId: string;
  let annKey: Key;
  let quorumId: string;
  let policyId: string;
  let walletId: string;
  beforeEach(async () => {
    server = await openLogins(kind, true);
    clients = clientsOf(server);
    const { account, done } = clients;
    const owner = { public_key: device.publicKey };
    policyId = (await done('createPolicy', { body: { ...messagePolicy(['hello']), owner } })).id!;
    annId = (await done('createUser', { body: { linked_accounts: [account('ann')] } })).id!;
    const members = { public_keys: [device.publicKey], user_ids: [annId], authorization_threshold: 2 };
    quorumId = (await done('createKeyQuorum', { body: members })).id!;
    const fields = { owner_id: quorumId, policy_ids: [policyId] };
    walletId = (await done('createWallet', { body: { chain_type: 'ethereum', ...fields } })).id!;
    annKey = await clients.keyFor('ann');
    return () => server[Symbol.asyncDispose]();
  });

  /** An intent that ann has signed. */
  async function signedByAnn(input: object = {}): Promise<IntentResponse> {
    const path = { wallet_id: walletId };
    const intent = await clients.done<IntentResponse>('createWalletRpcIntent', {
      ...{ path, body: hello },
      ...input,
    });
    expect((await clients.authorize(intent, annKey)).body.status).toBe('pending');
    return intent;
  }

  const statusOf = async (intent: IntentResponse) =>
    (await clients.done<IntentResponse>('getIntent', { path: { intent_id: intent.intent_id } })).status;

  test('a policy denies by then: the intent fails with that', async () => {
    const intent = await signedByAnn();
    const { done } = clients;
    const { rules } = messagePolicy(['bye']);
    await done('updatePolicy', { path: { policy_id: policyId }, body: { rules } }, device);
    const { status, body } = await clients.authorize(intent, device);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      status: 'failed',
      action_result: { response_body: { code: 'policy_violation' } },
    });
  });

  test('a policy allows more by then, and has no owner any more', async () => {
    const intent = await signedByAnn();
    const { done } = clients;
    const { rules } = messagePolicy(['hello', 'bye']);
    const path = { policy_id: policyId };
    await done('updatePolicy', { path, body: { rules, owner: null } }, device);
    await done('updatePolicy', { path, body: { rules: messagePolicy(['hello']).rules } }, device);
    expect((await clients.authorize(intent, device)).body.status).toBe('executed');
  });

  test('a member who has signed is removed', async () => {
    const intent = await signedByAnn();
    const body = { user_ids: [], authorization_threshold: 1 };
    await clients.done('updateKeyQuorum', { path: { key_quorum_id: quorumId }, body }, device, annKey);
    expect((await clients.authorize(intent, annKey)).status).toBe(401);
    expect((await clients.authorize(intent, device)).body.status).toBe('executed');
  });

  test('a policy allows until now, and the request has to wait', async () => {
    const { done, run } = clients;
    const owner = { public_key: device.publicKey };
    const until = {
      ...{ field_source: 'system', field: 'current_unix_timestamp', operator: 'lte' },
      value: String(Math.floor(server.clock.nowMs / 1000)),
    };
    const rule = { name: 'until now', method: 'personal_sign', action: 'ALLOW', conditions: [until] };
    const fields = { version: '1.0', name: 'until now', chain_type: 'ethereum', rules: [rule] };
    const { id } = await done('createPolicy', { body: { ...fields, owner } });
    const wallet = await done('createWallet', {
      body: { chain_type: 'ethereum', owner, policy_ids: [id] },
    });
    const { keyStore } = server.services;
    const waiting: typeof keyStore.signWithWallet = async (...asked) => {
      server.clock.nowMs += 5_000;
      return keyStore.signWithWallet(...asked);
    };
    Object.assign(server.services, { keyStore: { ...keyStore, signWithWallet: waiting } });
    const input = { path: { wallet_id: wallet.id! }, body: hello };
    expect((await run('walletRpc', input, device)).status).toBe(200);
    expect(await run('walletRpc', input, device)).toMatchObject({ body: { code: 'policy_violation' } });
  });

  test('a server of an earlier version has received the first signature', async () => {
    const intent = await signedByAnn();
    await inDatabase(server, (em) =>
      em
        .getKysely<Tables>()
        .updateTable('intent_signatures')
        .set({ signature: null, payload: null })
        .execute(),
    );
    expect((await clients.authorize(intent, device)).body).toMatchObject({
      status: 'failed',
      action_result: { response_body: { code: 'invalid_state' } },
    });
  });

  test('a user who has signed is frozen, and is not any more', async () => {
    const intent = await signedByAnn();
    const freeze = (frozenAtMs: number | null) =>
      inDatabase(server, (em) =>
        em
          .getKysely<Tables>()
          .updateTable('users')
          .set({ frozen_at_ms: frozenAtMs })
          .where('id', '=', annId)
          .execute(),
      );
    await freeze(server.clock.nowMs);
    expect((await clients.authorize(intent, device)).body.status).toBe('pending');
    await freeze(null);
    expect((await clients.authorize(intent, annKey)).body.status).toBe('executed');
  });

  test('a user who has signed is deleted', async () => {
    const intent = await signedByAnn();
    expect((await clients.run('deleteUser', { path: { user_id: annId } })).status).toBe(204);
    expect((await clients.authorize(intent, device)).body.status).toBe('pending');
    expect(
      (await clients.run('walletRpc', { path: { wallet_id: walletId }, body: hello }, device)).status,
    ).toBe(401);
  });

  test('the wallet is archived', async () => {
    const intent = await signedByAnn();
    await clients.done('archiveWallet', { path: { wallet_id: walletId } }, device, annKey);
    expect(await clients.authorize(intent, device)).toMatchObject({ body: { code: 'invalid_state' } });
    expect(await statusOf(intent)).toBe('dismissed');
  });

  test('the request of the intent expires', async () => {
    const expiryMs = server.clock.nowMs + 60_000;
    const [late, last] = [await signedByAnn({ expiryMs }), await signedByAnn({ expiryMs })];
    server.clock.nowMs = expiryMs;
    expect((await clients.authorize(last, device)).body.status).toBe('executed');
    server.clock.nowMs += 1;
    expect(await clients.authorize(late, device)).toMatchObject({ body: { code: 'invalid_state' } });
    expect(await statusOf(late)).toBe('expired');
  });

  test('the signer is started with other logins', async () => {
    const intent = await signedByAnn();
    const { isLocal = false } = server.services.keyStore;
    const keyStore = createKeyStore({
      masterKeys: [localMasterKey('test', Buffer.alloc(32, 7), systemEntropy)],
      entropy: systemEntropy,
      clock: { now: () => server.clock.nowMs },
    });
    Object.assign(server.services, { keyStore: { ...keyStore, isLocal } });
    // It has vouched for this key already, and vouches for no others.
    expect((await clients.authorize(intent, device)).body.status).toBe('executed');
    const later = await clients.keyFor('ann');
    const path = { wallet_id: walletId };
    expect((await clients.run('walletRpc', { path, body: hello }, device, later)).status).toBe(401);
    expect((await clients.run('walletRpc', { path, body: hello }, device, annKey)).status).toBe(200);
  });

  test('an owner is named by the key of which the key quorum before consists', async () => {
    const { done, run } = clients;
    const members = { public_keys: [device.publicKey], authorization_threshold: 1 };
    const { id: ownerId } = await done('createKeyQuorum', { body: members });
    const wallet = await done('createWallet', { body: { chain_type: 'ethereum', owner_id: ownerId } });
    const body = { owner: { public_key: device.publicKey } };
    const path = { wallet_id: wallet.id! };
    const changed = await done('updateWallet', { path, body }, device);
    expect(changed.owner_id).not.toBe(ownerId);
    expect((await run('walletRpc', { path, body: hello }, device)).status).toBe(200);
    const policy = await done('createPolicy', { body: { ...messagePolicy(['x']), owner_id: ownerId } });
    const ofPolicy = { policy_id: policy.id! };
    await done('updatePolicy', { path: ofPolicy, body }, device);
    const { rules } = messagePolicy(['y']);
    await done('updatePolicy', { path: ofPolicy, body: { rules } }, device);
  });

  test('members sign one request under two names of the server', async () => {
    const input = { path: { wallet_id: walletId }, body: hello, signElsewhereWith: [annKey.privateKey] };
    expect((await clients.run('walletRpc', input, device)).status).toBe(200);
    const alone = { ...input, signElsewhereWith: [device.privateKey] };
    expect((await clients.run('walletRpc', alone, device)).status).toBe(401);
  });
});

test('the signatures of an intent with many members are few requests for the signer', () => {
  const payload = payloadOf({ path: '/v1/wallets/w/rpc', body: hello });
  const members = Array.from({ length: 595 }, (_, index) => `key ${index}`);
  const signatures = members.map((member) => ({
    ...({ intentId: 'i', kind: 'public_key', member, publicKey: member, signedAtMs: 0 } as const),
    signed: { payload, signatures: [member] },
  }));
  const { evidence } = agreementOf('i', signatures);
  expect(readEvidence(evidence!)).toMatchObject({ path: '/v1/wallets/w/rpc' });
  expect(evidence!.requests.flatMap((request) => request.signatures)).toEqual(members);
});
