import canonicalize from 'canonicalize';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findKeyQuorum } from '../../../src/domain/access/key-quorums/find-key-quorum.ts';
import {
  createKeyQuorum,
  deleteKeyQuorum,
  updateKeyQuorum,
} from '../../../src/domain/access/key-quorums/key-quorum.ts';
import { type OwnerFields, resolveOwner } from '../../../src/domain/access/key-quorums/resolve-owner.ts';
import { createWallet } from '../../../src/domain/wallets/wallets/create-wallet.ts';
import type { CreateKeyQuorumRequest, UpdateKeyQuorumRequest } from '../../../src/generated/schemas.ts';
import { databaseKinds } from '../../support/databases.ts';
import { acme, openHouse, signer } from './house-of-rows.ts';

const ann = signer(1);
const bob = signer(2);
const cid = signer(3);
const pemOf = (key: string) =>
  `-----BEGIN PUBLIC KEY-----\n${key.match(/.{1,64}/g)?.join('\n')}\n-----END PUBLIC KEY-----\n`;
const other = { id: 'cother', name: 'Other' };

describe.each(databaseKinds)('on %s', (kind) => {
  let house: Awaited<ReturnType<typeof openHouse>>;
  let alice: string;
  beforeAll(async () => {
    house = await openHouse(kind);
    alice = await house.addUser('alice');
  });
  afterAll(() => house.close());

  const create = (input: CreateKeyQuorumRequest, app = acme) =>
    house.operate((context) => createKeyQuorum(context, input), { app });
  const find = (id: string, app = acme) => house.operate((context) => findKeyQuorum(context, id), { app });
  const update = (id: string, change: UpdateKeyQuorumRequest, by: ReturnType<typeof signer>[]) => {
    const url = `https://a/v1/key_quorums/${id}`;
    const headers = { 'service-app-id': acme.id };
    const payload = canonicalize({ version: 1, method: 'PATCH', url, body: change, headers })!;
    const signatures = by.map((each) => each.sign(payload));
    return house.operate((context) => updateKeyQuorum(context, id, change), {
      signatures,
      payloads: [payload],
    });
  };
  const remove = (id: string, signatures: string[]) =>
    house.operate((context) => deleteKeyQuorum(context, id), { signatures });
  const messageOf = (work: Promise<unknown>) =>
    work.then(
      () => 'accepted',
      (error) => `${error.status} ${error.message}`,
    );

  describe('create', () => {
    test('create: keeps members in the given order, keys in canonical form', async () => {
      const nested = await create({ public_keys: [cid.publicKey] });
      const made = await create({
        display_name: 'Board',
        public_keys: [pemOf(bob.publicKey), ann.publicKey],
        user_ids: [alice],
        key_quorum_ids: [nested.id],
        authorization_threshold: 3,
      });
      expect(await find(made.id)).toEqual({
        id: made.id,
        displayName: 'Board',
        threshold: 3,
        publicKeys: [bob.publicKey, ann.publicKey],
        userIds: [alice],
        keyQuorumIds: [nested.id],
      });
    });

    test.each<[string, CreateKeyQuorumRequest, string]>([
      ['no member', {}, 'expected at least one of'],
      ['empty lists', { public_keys: [], user_ids: [], key_quorum_ids: [] }, 'expected at least one of'],
      [
        'a threshold above the members',
        { public_keys: [ann.publicKey], authorization_threshold: 2 },
        '/authorization_threshold: expected at most 1, the number of members, got 2',
      ],
      [
        'half a threshold',
        { public_keys: [ann.publicKey, bob.publicKey], authorization_threshold: 1.5 },
        '/authorization_threshold: expected a whole number',
      ],
      ['a raw point', { public_keys: [ann.publicKey, 'B'.repeat(88)] }, '/public_keys/1: '],
      [
        'a key twice, once as PEM',
        { public_keys: [ann.publicKey, pemOf(ann.publicKey)] },
        '/public_keys/1: expected distinct members',
      ],
      [
        'an unknown user',
        { user_ids: ['did:service:unknown'] },
        '/user_ids: no user `did:service:unknown` in this app',
      ],
      [
        'an unknown quorum',
        { key_quorum_ids: ['a'.repeat(24)] },
        'Unable to find the specified key quorums for this app.',
      ],
    ])('refuses %s', async (_, input, message) => {
      const answer = await messageOf(create(input));
      expect(answer).toMatch(/^400 /);
      expect(answer).toContain(message);
    });

    test('create: refuses more members than a request can have signatures', async () => {
      const keys = Array.from({ length: 101 }, (_, index) => signer(index + 10).publicKey);
      expect(await messageOf(create({ public_keys: keys }))).toMatch(
        /^400 .*expected at most 100 members, got 101/,
      );
    });

    test('create: refuses a member that itself has nested quorums', async () => {
      const leaf = await create({ public_keys: [ann.publicKey] });
      const middle = await create({ key_quorum_ids: [leaf.id] });
      expect(await messageOf(create({ key_quorum_ids: [middle.id] }))).toContain('nesting is one level deep');
    });

    test('create: refuses users and quorums of another app', async () => {
      const theirs = await create({ public_keys: [ann.publicKey] }, other);
      expect(await messageOf(create({ key_quorum_ids: [theirs.id] }))).toContain('Unable to find');
      expect(await messageOf(create({ user_ids: [alice] }, other))).toContain('no user');
      expect(await messageOf(find(theirs.id))).toBe('404 Key quorum not found');
      expect(await messageOf(update(theirs.id, { display_name: 'Mine' }, [ann]))).toBe(
        '404 Key quorum not found',
      );
      expect(await messageOf(remove(theirs.id, [ann.sign()]))).toBe('404 Key quorum not found');
    });
  });

  describe('update', () => {
    test('replaces given lists, keeps the others, and requires the old members', async () => {
      const { id } = await create({
        public_keys: [ann.publicKey],
        user_ids: [alice],
        authorization_threshold: 1,
      });
      expect(await messageOf(update(id, { public_keys: [bob.publicKey] }, [bob]))).toMatch(/^401 /);
      await update(id, { public_keys: [bob.publicKey, cid.publicKey], display_name: 'New' }, [ann]);
      expect(await find(id)).toEqual({
        id,
        displayName: 'New',
        threshold: 1,
        publicKeys: [bob.publicKey, cid.publicKey],
        userIds: [alice],
        keyQuorumIds: [],
      });
      expect(await messageOf(update(id, { authorization_threshold: 2 }, [ann]))).toMatch(/^401 /);
      await update(id, { authorization_threshold: 2, user_ids: [] }, [cid]);
      expect(await find(id)).toMatchObject({ threshold: 2, userIds: [] });
    });

    test.each<[string, UpdateKeyQuorumRequest, string]>([
      ['no field', {}, 'expected at least one field'],
      ['no member left', { public_keys: [] }, 'expected at least one of'],
      [
        'a threshold above the members',
        { authorization_threshold: 3 },
        'expected at most 2, the number of members, got 3',
      ],
      [
        'fewer members than the threshold',
        { public_keys: [ann.publicKey] },
        'expected at most 1, the number of members, got 2',
      ],
    ])('refuses %s and changes nothing', async (_, change, message) => {
      const before = await create({
        public_keys: [ann.publicKey, bob.publicKey],
        authorization_threshold: 2,
      });
      const answer = await messageOf(update(before.id, change, [ann, bob]));
      expect(answer).toMatch(/^400 /);
      expect(answer).toContain(message);
      expect(await find(before.id)).toEqual(before);
    });

    test('update: refuses itself as a member, and nested quorums if it is nested itself', async () => {
      const inner = await create({ public_keys: [ann.publicKey] });
      const leaf = await create({ public_keys: [bob.publicKey] });
      const outer = await create({ key_quorum_ids: [inner.id] });
      const nest = (ids: string[]) => messageOf(update(inner.id, { key_quorum_ids: ids }, [ann]));
      expect(await nest([inner.id])).toContain('a key quorum cannot be a member of itself');
      expect(await nest([outer.id])).toContain('nesting is one level deep');
      expect(await nest([leaf.id])).toContain(`this key quorum is a member of \`${outer.id}\``);
    });
  });

  describe('delete', () => {
    test('delete: requires the authorization of the members', async () => {
      const { id } = await create({ public_keys: [ann.publicKey, bob.publicKey] });
      expect(await messageOf(remove(id, []))).toMatch(/^401 /);
      expect(await messageOf(remove(id, [ann.sign(), cid.sign()]))).toMatch(/^401 /);
      await remove(id, [ann.sign(), bob.sign()]);
      expect(await messageOf(find(id))).toBe('404 Key quorum not found');
    });

    test('delete: is refused while the quorum is nested, owns or signs', async () => {
      const { id } = await create({ public_keys: [ann.publicKey] });
      await create({ key_quorum_ids: [id], public_keys: [bob.publicKey] });
      await house.operate((context) =>
        createWallet(context, {
          chain_type: 'ethereum',
          owner_id: id,
          additional_signers: [{ signer_id: id }],
        }),
      );
      await expect(remove(id, [ann.sign()])).rejects.toMatchObject({
        status: 400,
        code: 'authorization_key_has_associated_wallets',
        message:
          'the key quorum cannot be deleted: it is the owner of a wallet and a signer of a wallet and a member of another key quorum',
      });
      expect((await find(id)).publicKeys).toEqual([ann.publicKey]);
    });

    test('delete: waits for a request that adds a reference to the quorum, and is then refused', async () => {
      const { id } = await create({ public_keys: [ann.publicKey] });
      const steps: string[] = [];
      let named = () => {};
      const isNamed = new Promise<void>((resolve) => {
        named = resolve;
      });
      const reference = house.operate(async (context) => {
        await resolveOwner(context, { owner_id: id });
        named();
        await new Promise((resolve) => setTimeout(resolve, 100));
        steps.push('referred');
        await createWallet(context, { chain_type: 'ethereum', owner_id: id });
      });
      await isNamed;
      const removal = messageOf(remove(id, [ann.sign()])).finally(() => steps.push('judged'));
      await reference;
      expect(await removal).toBe('400 the key quorum cannot be deleted: it is the owner of a wallet');
      expect(steps).toEqual(['referred', 'judged']);
    });
  });

  describe('resolveOwner', () => {
    const resolve = (fields: OwnerFields, app = acme) =>
      house.operate((context) => resolveOwner(context, fields), { app });

    test('distinguishes no owner, a removed owner and a key quorum', async () => {
      const { id } = await create({ public_keys: [ann.publicKey] });
      expect(await resolve({})).toBeUndefined();
      expect(await resolve({ owner: null })).toBeNull();
      expect(await resolve({ owner_id: null })).toBeNull();
      expect(await resolve({ owner_id: id })).toBe(id);
    });

    test('resolveOwner creates a quorum of one for a key or a user, and reuses it', async () => {
      const byKey = (await resolve({ owner: { public_key: ann.publicKey } })) ?? '';
      expect(await find(byKey)).toEqual({
        id: byKey,
        displayName: null,
        threshold: 1,
        publicKeys: [ann.publicKey],
        userIds: [],
        keyQuorumIds: [],
      });
      expect(await resolve({ owner: { public_key: pemOf(ann.publicKey) } })).toBe(byKey);
      const byUser = (await resolve({ owner: { user_id: alice } })) ?? '';
      expect(await find(byUser)).toMatchObject({ userIds: [alice], publicKeys: [], threshold: 1 });
      expect(await resolve({ owner: { user_id: alice } })).toBe(byUser);
      expect(await resolve({ owner: { public_key: ann.publicKey } }, other)).not.toBe(byKey);
    });

    test('resolveOwner does not reuse a quorum that was changed', async () => {
      const before = (await resolve({ owner: { public_key: bob.publicKey } })) ?? '';
      await update(before, { public_keys: [cid.publicKey] }, [bob]);
      const after = (await resolve({ owner: { public_key: bob.publicKey } })) ?? '';
      expect(after).not.toBe(before);
      expect((await find(after)).publicKeys).toEqual([bob.publicKey]);
    });

    test('resolveOwner creates one quorum for concurrent requests', async () => {
      const fresh = signer(77).publicKey;
      const ids = await Promise.all(
        Array.from({ length: 8 }, () => resolve({ owner: { public_key: fresh } })),
      );
      expect(new Set(ids).size).toBe(1);
    });

    test.each<[string, OwnerFields, string]>([
      [
        'both fields',
        { owner: null, owner_id: null },
        '/owner_id: expected either `owner` or `owner_id`, not both',
      ],
      [
        'an unknown quorum',
        { owner_id: 'a'.repeat(24) },
        'Unable to find the specified key quorums for this app.',
      ],
      [
        'an unknown user',
        { owner: { user_id: 'did:service:x' } },
        '/owner/user_id: no user `did:service:x` in this app',
      ],
      ['an invalid key', { owner: { public_key: 'AAAA' } }, '/owner/public_key: expected a DER'],
    ])('refuses %s', async (_, fields, message) => {
      const answer = await messageOf(resolve(fields));
      expect(answer).toMatch(/^400 /);
      expect(answer).toContain(message);
    });
  });
});
