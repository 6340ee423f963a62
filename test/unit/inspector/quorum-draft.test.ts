import { expect, test } from 'vitest';
import { aliceKey, bobKey, carolKey } from '../../../mocks/authorization-keys.ts';
import { requestValidators } from '../../../src/generated/request-validators.js';
import type { SandboxKeyQuorum } from '../../../src/sandbox/generated/schemas.ts';
import { bodyOf, choicesOf, draftOf, emptyDraft } from '../../../src/web/inspector/quorum-draft.ts';

const quorum = (id: string, members: SandboxKeyQuorum['members'] = []): SandboxKeyQuorum => ({
  ...{ id, app_id: 'app', display_name: `Quorum ${id}`, threshold: 2, size: members.length, members },
  ...{ wallets: [], wallet_count: 0 },
});
const key = (id: string) => ({ type: 'public_key' as const, id, name: null });

test('the body of a new key quorum omits empty lists, and that of an update has all of them', () => {
  const draft = { name: ' Ops ', threshold: 3, members: [key(aliceKey.publicKey), key(bobKey.publicKey)] };
  const created = bodyOf(draft);
  expect(created).toEqual({
    display_name: 'Ops',
    authorization_threshold: 2,
    public_keys: [aliceKey.publicKey, bobKey.publicKey],
  });
  expect(requestValidators.createKeyQuorum.body!(created)).toBe(true);
  const updated = bodyOf(draft, { isUpdate: true });
  expect(updated).toEqual({ ...created, user_ids: [], key_quorum_ids: [] });
  expect(requestValidators.updateKeyQuorum.body!(updated)).toBe(true);
  expect(bodyOf(emptyDraft)).toEqual({ authorization_threshold: 1 });
});

test('a stored key quorum gives its own body back', () => {
  const user = { type: 'user' as const, id: 'did:service:u', name: 'alice@example.com' };
  const stored = quorum('q1', [key(aliceKey.publicKey), user]);
  expect(bodyOf(draftOf(stored))).toEqual({
    display_name: 'Quorum q1',
    authorization_threshold: 2,
    public_keys: [aliceKey.publicKey],
    user_ids: ['did:service:u'],
  });
});

test('members are chosen by name, without the quorum itself and without nested quorums', () => {
  const nested = quorum('q2', [{ type: 'key_quorum', id: 'q3', name: null }]);
  const people = {
    keys: [{ name: 'alice', public_key: aliceKey.publicKey }],
    users: [],
    quorums: [quorum('q1'), nested, quorum('q3')],
  };
  const groups = choicesOf(people, quorum('q1'), [key(carolKey.publicKey)]);
  expect(groups.map(({ title, own }) => [title, own.map(({ text }) => text)])).toEqual([
    ['Keys', ['alice', 'MFkwEw…7w==']],
    ['Key quorums', ['Quorum q3']],
  ]);
});
