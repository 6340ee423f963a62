import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { makeVoucherKeys } from '../../../src/domain/access/key-quorums/voucher-keys.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import type { OperationId } from '../../../src/generated/operations.ts';
import type { IntentResponse } from '../../../src/generated/schemas.ts';
import { messagePolicy } from '../../contract/policies/rules.ts';
import { databaseKinds } from '../../support/databases.ts';
import type { RunInput, TestOperations } from '../../support/run-operations.ts';
import { clientsOf, inDatabase, type Key, keyOf, openLogins } from '../../support/signer/login-clients.ts';
import { newOwner } from '../../support/signer/owner.ts';

// Members sign at different times, and what they are known by changes meanwhile. The key store refuses what the
// server must not ask of it: no honest client may be answered with an internal error.

const hourMs = 3_600_000;

const hello = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };

/** Who has signed, of the members of an intent's owner. */
function signedIn({ authorization_details: [owner] }: IntentResponse): boolean[] {
  return owner!.members.map((member) => 'signed_at' in member && member.signed_at !== null);
}

describe.each(databaseKinds)('on %s', (kind) => {
  describe.each([true, false])('users that the key store recognizes: %s', (isPinned) => {
    let server: TestOperations;
    let clients: ReturnType<typeof clientsOf>;
    beforeAll(async () => {
      server = await openLogins(kind, isPinned);
      clients = clientsOf(server);
    });
    afterAll(() => server[Symbol.asyncDispose]());

    const device = keyOf(newOwner());
    let count = 0;
    let ann: { subject: string; id: string };
    let quorumId: string;
    let walletId: string;
    beforeEach(async () => {
      count += 1;
      const subject = `ann-${count}`;
      const { account, done } = clients;
      const { id } = await done('createUser', { body: { linked_accounts: [account(subject)] } });
      ann = { subject, id: id! };
      const members = { public_keys: [device.publicKey], user_ids: [ann.id], authorization_threshold: 2 };
      quorumId = (await done('createKeyQuorum', { body: members })).id!;
      walletId = (await done('createWallet', { body: { chain_type: 'ethereum', owner_id: quorumId } })).id!;
    });

    /** Has ann sign an intent, and her key expire, before the device signs. */
    async function signedLate(id: OperationId, input: RunInput) {
      const { authorize, done, keyFor } = clients;
      const intent = await done<IntentResponse>(id, input);
      const first = await authorize(intent, await keyFor(ann.subject));
      expect(first.body).toMatchObject({ status: 'pending' });
      expect(signedIn(first.body)).toEqual([false, true]);
      server.clock.nowMs += hourMs;
      return { intent, second: await authorize(intent, device) };
    }

    const proposals: Record<string, () => Promise<readonly [OperationId, RunInput]>> = {
      'a use of a wallet': async () => [
        'createWalletRpcIntent',
        { path: { wallet_id: walletId }, body: hello },
      ],
      'a change of a wallet': async () => {
        const body = { owner: { public_key: device.publicKey } };
        return ['updateWalletIntent', { path: { wallet_id: walletId }, body }];
      },
      'a change of the key quorum': async () => {
        const body = { public_keys: [device.publicKey], user_ids: [], authorization_threshold: 1 };
        return ['updateKeyQuorumIntent', { path: { key_quorum_id: quorumId }, body }];
      },
      'a change of a policy': async () => {
        const { id } = await clients.done('createPolicy', {
          body: { ...messagePolicy(['x']), owner_id: quorumId },
        });
        const [rule] = messagePolicy(['y']).rules;
        return ['createPolicyRuleIntent', { path: { policy_id: id! }, body: rule }];
      },
    };

    test.each(Object.keys(proposals))('%s, signed by a key that has expired since', async (what) => {
      const { authorize, done, keyFor } = clients;
      const { intent, second } = await signedLate(...(await proposals[what]!()));
      expect(second.status, JSON.stringify(second.body)).toBe(200);
      if (!isPinned) {
        // The server is believed which keys a user has had.
        expect(second.body).toMatchObject({ status: 'executed', action_result: { status_code: 200 } });
        return;
      }
      // What the other member has signed is kept; the user is asked again.
      expect(second.body.status).toBe('pending');
      expect(signedIn(second.body)).toEqual([true, false]);
      const asked = { query: { pending_member_id: ann.id } };
      const waiting = await done<{ data: IntentResponse[] }>('listIntents', asked);
      expect(waiting.data.map(({ intent_id: id }) => id)).toContain(intent.intent_id);
      const third = await authorize(intent, await keyFor(ann.subject));
      expect(third.body).toMatchObject({ status: 'executed', action_result: { status_code: 200 } });
    });

    test('a user who signs twice with live keys is one member', async () => {
      const { authorize, done, keyFor } = clients;
      const path = { wallet_id: walletId };
      const intent = await done<IntentResponse>('createWalletRpcIntent', { path, body: hello });
      for (const key of [await keyFor(ann.subject), await keyFor(ann.subject)]) {
        expect((await authorize(intent, key)).body.status).toBe('pending');
      }
      expect((await authorize(intent, device)).body.status).toBe('executed');
    });

    test('the second of two members signs in another hour, and the first again', async () => {
      const { authorize, keyFor, done } = clients;
      const path = { wallet_id: walletId };
      const intent = await done<IntentResponse>('createWalletRpcIntent', { path, body: hello });
      await authorize(intent, device);
      server.clock.nowMs += 2 * hourMs;
      expect((await authorize(intent, await keyFor(ann.subject))).body.status).toBe('executed');
    });
  });

  describe('what users are recognized by changes', () => {
    let server: TestOperations;
    let clients: ReturnType<typeof clientsOf>;
    beforeEach(async () => {
      server = await openLogins(kind, true);
      clients = clientsOf(server);
      return () => server[Symbol.asyncDispose]();
    });

    const uses = (walletId: string, by: Key) =>
      clients.run('walletRpc', { path: { wallet_id: walletId }, body: hello }, by);

    test('an account of the login that is replaced by another one does not count', async () => {
      const { account, done, keyFor } = clients;
      const ann = await done('createUser', { body: { linked_accounts: [account('ann')] } });
      const owner = { user_id: ann.id };
      const wallet = await done('createWallet', { body: { chain_type: 'ethereum', owner } });
      expect((await uses(wallet.id!, await keyFor('ann'))).status).toBe(200);
      const path = { user_id: ann.id! };
      const mail = { type: 'email', address: 'ann@acme.example' };
      await done('linkUserAccount', { path, body: mail });
      await done('unlinkUserAccount', { path, body: { type: 'custom_auth', handle: 'ann' } });
      await done('linkUserAccount', { path, body: account('ann-2') });
      const refused = await uses(wallet.id!, await keyFor('ann-2'));
      expect(refused).toMatchObject({ status: 401 });
      // The account of before, once more, is what the wallet knows.
      await done('unlinkUserAccount', { path, body: { type: 'custom_auth', handle: 'ann-2' } });
      await done('linkUserAccount', { path, body: account('ann') });
      expect((await uses(wallet.id!, await keyFor('ann'))).status).toBe(200);
    });

    test('a member who had no account of the login counts once the members have added the user again', async () => {
      const { account, done, keyFor } = clients;
      const device = keyOf(newOwner());
      const ann = await done('createUser', { body: { linked_accounts: [account('ann')] } });
      const mail = { type: 'email', address: 'bob@acme.example' };
      const bob = await done('createUser', { body: { linked_accounts: [mail] } });
      const members = { public_keys: [device.publicKey], user_ids: [ann.id], authorization_threshold: 1 };
      const quorum = await done('createKeyQuorum', { body: members });
      const path = { key_quorum_id: quorum.id! };
      const wallet = await done('createWallet', {
        body: { chain_type: 'ethereum', owner_id: quorum.id },
      });
      const withBob = { user_ids: [ann.id, bob.id] };
      await done('updateKeyQuorum', { path, body: withBob }, device);
      await done('linkUserAccount', { path: { user_id: bob.id! }, body: account('bob') });
      expect(await uses(wallet.id!, await keyFor('bob'))).toMatchObject({ status: 401 });
      await done('updateKeyQuorum', { path, body: { user_ids: [ann.id] } }, device);
      await done('updateKeyQuorum', { path, body: withBob }, device);
      expect((await uses(wallet.id!, await keyFor('bob'))).status).toBe(200);
    });

    test('another voucher key: users are not recognized by what it vouches for', async () => {
      const { account, done, keyFor } = clients;
      const ann = await done('createUser', { body: { linked_accounts: [account('ann')] } });
      const owner = { user_id: ann.id };
      const wallet = await done('createWallet', { body: { chain_type: 'ethereum', owner } });
      const bob = await done('createUser', { body: { linked_accounts: [account('bob')] } });
      await done('createWallet', { body: { chain_type: 'ethereum', owner: { user_id: bob.id } } });
      const [annKey, bobKey] = [await keyFor('ann'), await keyFor('bob')];
      await inDatabase(server, async (em) => {
        await em.getKysely<Tables>().deleteFrom('voucher_keys').execute();
        const { ids, keyStore } = server.services;
        await makeVoucherKeys({ em, ids, keyStore });
      });
      expect(await uses(wallet.id!, annKey)).toMatchObject({ status: 401 });
      expect(await uses(wallet.id!, await keyFor('ann'))).toMatchObject({ status: 401 });
      // A wallet from afterwards knows the new one, and not what the one before has vouched for.
      const members = { user_ids: [bob.id], authorization_threshold: 1 };
      const { id: ownerId } = await done('createKeyQuorum', { body: members });
      const later = await done('createWallet', { body: { chain_type: 'ethereum', owner_id: ownerId } });
      expect(await uses(later.id!, bobKey)).toMatchObject({ status: 401 });
      expect((await uses(later.id!, await keyFor('bob'))).status).toBe(200);
    });

    test('a user is a member of one key quorum that is recognized and of one that is not', async () => {
      const { account, done, keyFor } = clients;
      const mail = { type: 'email', address: 'ann@acme.example' };
      const ann = await done('createUser', { body: { linked_accounts: [mail] } });
      const old = await done('createKeyQuorum', {
        body: { user_ids: [ann.id], authorization_threshold: 1 },
      });
      await done('linkUserAccount', { path: { user_id: ann.id! }, body: account('ann') });
      const wallet = await done('createWallet', {
        body: {
          chain_type: 'ethereum',
          owner: { user_id: ann.id },
          additional_signers: [{ signer_id: old.id }],
        },
      });
      // A token for another recipient: the key store does not vouch for the key, so it counts in one of them only.
      const key = await keyFor('ann', { cnf: { jkt: 'x'.repeat(43) } });
      expect((await uses(wallet.id!, key)).status).toBe(200);
    });

    test('a request at the last moment of a key is not refused while it waits', async () => {
      const { account, done, keyFor } = clients;
      const ann = await done('createUser', { body: { linked_accounts: [account('ann')] } });
      const owner = { user_id: ann.id };
      const wallet = await done('createWallet', { body: { chain_type: 'ethereum', owner } });
      const key = await keyFor('ann');
      const [{ expires_at_ms: endsMs }] = (await inDatabase(server, (em) =>
        em.getKysely<Tables>().selectFrom('user_keys').select('expires_at_ms').execute(),
      )) as [{ expires_at_ms: number }];
      server.clock.nowMs = endsMs - 1;
      const { keyStore } = server.services;
      const { signWithWallet } = keyStore;
      const late = async (...asked: Parameters<typeof signWithWallet>) => {
        server.clock.nowMs += 30_000;
        return signWithWallet(...asked);
      };
      Object.assign(server.services, { keyStore: { ...keyStore, signWithWallet: late } });
      expect((await uses(wallet.id!, key)).status).toBe(200);
      expect((await uses(wallet.id!, key)).status).toBe(401);
    });
  });
});
