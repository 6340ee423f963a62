import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { IntentResponse } from '../../../src/generated/schemas.ts';
import { databaseKinds } from '../../support/databases.ts';
import type { TestOperations } from '../../support/run-operations.ts';
import { clientsOf, keyOf, openLogins } from '../../support/signer/login-clients.ts';
import { newOwner } from '../../support/signer/owner.ts';

// Who is still asked to sign, when the key with which a member of a nested key quorum has signed expires.

const hourMs = 3_600_000;
const hello = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };

describe.each(databaseKinds)('on %s', (kind) => {
  describe.each([true, false])('users that the key store recognizes: %s', (isPinned) => {
    let server: TestOperations;
    let clients: ReturnType<typeof clientsOf>;
    beforeAll(async () => {
      server = await openLogins(kind, isPinned);
      clients = clientsOf(server);
    });
    afterAll(() => server[Symbol.asyncDispose]());

    /** A key quorum of a device and another key quorum, whose only member is a user. */
    async function nested(subject: string) {
      const { account, done } = clients;
      const device = keyOf(newOwner());
      const linked = { body: { linked_accounts: [account(subject)] } };
      const ann = (await done('createUser', linked)).id!;
      const inner = (await done('createKeyQuorum', { body: { user_ids: [ann], authorization_threshold: 1 } }))
        .id!;
      const body = {
        public_keys: [device.publicKey],
        key_quorum_ids: [inner],
        authorization_threshold: 2,
      };
      const outer = (await done('createKeyQuorum', { body })).id!;
      const wallet = await done('createWallet', { body: { chain_type: 'ethereum', owner_id: outer } });
      const path = { wallet_id: wallet.id! };
      const intent = await done<IntentResponse>('createWalletRpcIntent', { path, body: hello });
      return { device, ann, inner, outer, intent };
    }

    async function asked(member: string): Promise<string[]> {
      const query = { pending_member_id: member };
      const { data } = await clients.done<{ data: IntentResponse[] }>('listIntents', { query });
      return data.map(({ intent_id: id }) => id);
    }

    test('a member of a nested key quorum is asked again once the key does not count any more', async () => {
      const { authorize, keyFor } = clients;
      const subject = `ann of ${isPinned}`;
      const { device, ann, inner, outer, intent } = await nested(subject);
      const id = intent.intent_id;
      for (const member of [ann, inner, outer, device.publicKey]) expect(await asked(member)).toEqual([id]);
      expect((await authorize(intent, await keyFor(subject))).body.status).toBe('pending');
      for (const member of [ann, inner]) expect(await asked(member)).toEqual([]);
      for (const member of [outer, device.publicKey]) expect(await asked(member)).toEqual([id]);
      server.clock.nowMs += hourMs;
      for (const member of [ann, inner]) expect(await asked(member)).toEqual(isPinned ? [id] : []);
      const second = await authorize(intent, device);
      expect(second.body.status).toBe(isPinned ? 'pending' : 'executed');
      if (!isPinned) return;
      expect(await asked(device.publicKey)).toEqual([]);
      for (const member of [ann, inner, outer]) expect(await asked(member)).toEqual([id]);
      expect((await authorize(intent, await keyFor(subject))).body.status).toBe('executed');
      for (const member of [ann, inner, outer]) expect(await asked(member)).toEqual([]);
    });
  });
});
