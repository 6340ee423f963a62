import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { SignJWT } from 'jose';
import { beforeEach, expect, test } from 'vitest';
import { sealName } from '../../../src/engine/authorization/policy-seals.ts';
import type { QuorumChange, QuorumRecord } from '../../../src/engine/authorization/quorum-records.ts';
import {
  makeVoucher,
  type StoredVoucherKey,
  type Voucher,
} from '../../../src/engine/authorization/user-vouchers.ts';
import { hpkeRecipientFromSeed } from '../../../src/engine/crypto/hpke.ts';
import {
  type CompromisedServer,
  compromisedServer,
  quorum,
  type SealedWallet,
} from '../../support/signer/compromised-server.ts';
import { newOwner, type Owner, ownerOf, signedBy } from '../../support/signer/owner.ts';

// A compromised server, which chooses what it sends to the signer, tries to act for a user whose login it does not see.

const nowMs = 1_900_000_000_000;
const hourMs = 3_600_000;
const login = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const userId = 'did:service:ann';

let server: CompromisedServer;
let voucherKey: StoredVoucherKey & { readonly name: string };
beforeEach(async () => {
  const keys = [{ algorithm: 'ES256', kid: 'one', key: login.publicKey } as const];
  const logins = ['acme', 'globex'].map(
    (app) => [app, { keys, userIdClaim: 'uid', audiences: [app] }] as const,
  );
  server = await compromisedServer(nowMs, new Map(logins));
  voucherKey = await newVoucherKey('acme');
  return server.close;
});

/** Has the signer make a voucher key. */
async function newVoucherKey(appId: string, id = 'key') {
  const binding = { purpose: 'voucher-key', rowId: id, appId };
  const { parts, json } = await server.call('createVoucherKey', [], { binding });
  return { id, name: (json as { name: string }).name, seal: sealOf(parts) };
}

function sealOf([secret, dataKey]: readonly Uint8Array[]) {
  const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64');
  return { sealedSecret: base64(secret!), wrappedDataKey: base64(dataKey!), masterKeyId: 'test' };
}

const claims = { uid: 'ann', aud: 'acme' };
const tokenOf = (over: object = {}, by: KeyObject = login.privateKey, kid = 'one', exp = nowMs / 1000 + 60) =>
  new SignJWT({ ...claims, ...over })
    .setProtectedHeader({ alg: 'ES256', kid })
    .setExpirationTime(exp)
    .sign(by);

/** Asks for a key of a user, who is handed it as it is. */
async function keyFor(token: string, asked: object = {}, recipient?: Uint8Array) {
  const ofLogin = { appId: 'acme', token, expiresAtMs: nowMs + hourMs, voucherKey, ...asked };
  const parts = recipient === undefined ? [] : [recipient];
  const { json } = await server.call('createUserKey', parts, { login: ofLogin });
  const { privateKey, voucher } = json as { privateKey: string; voucher?: Voucher };
  return { key: privateKey === undefined ? undefined : ownerOf(privateKey), voucher };
}

/** A wallet of the user. */
function walletOf(name = voucherKey.name): Promise<SealedWallet> {
  const users = { voucher: name, subjects: { [userId]: 'ann' } };
  return server.walletOf({ owner: quorum('quorum', { threshold: 1, userIds: [userId], users }) });
}

const hello = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };

function signs(wallet: SealedWallet, by: Owner, over: object) {
  const evidence = signedBy([by], { path: `/v1/wallets/${wallet.binding.rowId}/rpc`, body: hello });
  const { authority, quorums } = wallet;
  return server.signs(wallet, hello, { authority, quorums, userKeys: {}, evidence, ...over });
}

test('a user signs with a key for a token of the login', async () => {
  const wallet = await walletOf();
  const { key, voucher } = await keyFor(await tokenOf());
  const vouching = { key: voucherKey, vouchers: [voucher] };
  await expect(signs(wallet, key!, { vouching })).resolves.toHaveProperty('signature');
  // Whatever the caller asked for, it ends after an hour.
  const long = await keyFor(await tokenOf(), { expiresAtMs: nowMs + 1_000 * hourMs });
  expect(JSON.parse(long.voucher!.content)).toMatchObject({ subject: 'ann', expiresAtMs: nowMs + hourMs });
});

test('only a token of the login makes the signer vouch for a key', async () => {
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { publicKeyBytes } = await hpkeRecipientFromSeed(new Uint8Array(32).fill(7));
  const point = Buffer.from(publicKeyBytes);
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => part.toString('base64url'));
  const digest = await crypto.subtle.digest(
    'SHA-256',
    Buffer.from(`{"crv":"P-256","kty":"EC","x":"${x}","y":"${y}"}`),
  );
  const cnf = { jkt: Buffer.from(digest).toString('base64url') };
  const [head, , tail] = (await tokenOf()).split('.');
  const payload = Buffer.from(JSON.stringify({ ...claims, uid: 'bob', exp: 2e9 })).toString('base64url');
  const refused: Record<string, readonly [string, object?, Uint8Array?]> = {
    'signed by another key': [await tokenOf({}, other.privateKey)],
    'of an unknown key': [await tokenOf({}, login.privateKey, 'two')],
    'an expired one': [await tokenOf({}, login.privateKey, 'one', nowMs / 1000 - 1)],
    'for another audience': [await tokenOf({ aud: 'globex' })],
    'without a user': [await tokenOf({ uid: '' })],
    'with another payload': [`${head}.${payload}.${tail}`],
    unsigned: [`${Buffer.from('{"alg":"none"}').toString('base64url')}.${payload}.`],
    'no token': ['x'],
    'for an app without a login': [await tokenOf(), { appId: 'initech' }],
    'for another recipient': [await tokenOf({ cnf: { jkt: 'x' } }), {}, publicKeyBytes],
    'for a recipient, handed over as it is': [await tokenOf({ cnf })],
  };
  for (const [what, asked] of Object.entries(refused)) {
    expect((await keyFor(...asked)).voucher, what).toBeUndefined();
  }
  expect((await keyFor(await tokenOf({ cnf }), {}, publicKeyBytes)).voucher).toBeDefined();
});

test('no key without a voucher for this user counts', async () => {
  const wallet = await walletOf();
  const { key, voucher } = await keyFor(await tokenOf());
  const bob = await keyFor(await tokenOf({ uid: 'bob' }));
  const old = await keyFor(await tokenOf(), { expiresAtMs: nowMs });
  const thief = newOwner();
  const content = { appId: 'acme', subject: 'ann', publicKey: thief.publicKey, expiresAtMs: nowMs + hourMs };
  const known = Buffer.alloc(32, 7);
  const own = makeVoucher(known, content);
  const second = await newVoucherKey('acme', 'second');
  const globex = await newVoucherKey('globex');
  const ofSecond = await keyFor(await tokenOf(), { voucherKey: second });
  const ofGlobex = await keyFor(await tokenOf({ aud: 'globex' }), { appId: 'globex', voucherKey: globex });
  const tag = voucher!.tag;
  const uses: Record<string, readonly [Owner, object]> = {
    'what the server says': [thief, { userKeys: { [userId]: [thief.publicKey] } }],
    'no voucher': [key!, { vouching: { key: voucherKey, vouchers: [] } }],
    'no voucher key': [key!, {}],
    'a voucher for another key': [thief, { vouching: { key: voucherKey, vouchers: [voucher] } }],
    'an altered voucher': [
      thief,
      { vouching: { key: voucherKey, vouchers: [{ tag, content: JSON.stringify(content) }] } },
    ],
    'a voucher under a secret of its own': [thief, { vouching: { key: voucherKey, vouchers: [own] } }],
    'a voucher for another user': [bob.key!, { vouching: { key: voucherKey, vouchers: [bob.voucher] } }],
    'an expired voucher': [old.key!, { vouching: { key: voucherKey, vouchers: [old.voucher] } }],
    'a voucher under another key of the signer': [
      ofSecond.key!,
      { vouching: { key: second, vouchers: [ofSecond.voucher] } },
    ],
    'a voucher for another app': [ofGlobex.key!, { vouching: { key: globex, vouchers: [ofGlobex.voucher] } }],
    'a reader of vouchers': [thief, { readVoucher: 'yes', vouching: { key: voucherKey, vouchers: [own] } }],
  };
  for (const [what, [by, over]] of Object.entries(uses)) {
    await expect(signs(wallet, by, over), what).rejects.toThrow();
  }
  // Another base of the key quorum is another key quorum.
  const [{ base }] = wallet.quorums as [QuorumRecord];
  for (const users of [undefined, { ...base.users!, subjects: { [userId]: 'bob' } }]) {
    const quorums = [{ base: { ...base, users }, changes: [] }];
    const vouching = { key: voucherKey, vouchers: [bob.voucher] };
    const over = { quorums, vouching, userKeys: { [userId]: [bob.key!.publicKey] } };
    await expect(signs(wallet, bob.key!, over)).rejects.toThrow();
  }
});

test('the secret of a voucher key is neither given out nor replaced by one that the server knows', async () => {
  const binding = { purpose: 'voucher-key', rowId: 'key', appId: 'acme' };
  const known = Buffer.alloc(32, 7);
  await expect(server.call('seal', [known], { binding })).rejects.toThrow();
  const { sealedSecret, wrappedDataKey } = voucherKey.seal;
  const parts = [Buffer.from(sealedSecret, 'base64'), Buffer.from(wrappedDataKey, 'base64')];
  await expect(server.call('open', parts, { key: 'test', binding })).rejects.toThrow();
  for (const purpose of ['fingerprint-key', 'voucher-key']) {
    const asked = { key: 'test', binding: { ...binding, purpose }, text: 'custos user key\n{}' };
    await expect(server.call('fingerprint', parts, asked)).rejects.toThrow();
  }
  // A secret of another purpose does not pass for a voucher key.
  const other = { ...binding, purpose: 'webhook-secret' };
  const { parts: sealed } = await server.call('seal', [known], { binding: other });
  const wallet = await walletOf(sealName(known));
  const thief = newOwner();
  const content = { appId: 'acme', subject: 'ann', publicKey: thief.publicKey, expiresAtMs: nowMs + hourMs };
  const vouching = { key: { id: 'key', seal: sealOf(sealed) }, vouchers: [makeVoucher(known, content)] };
  await expect(signs(wallet, thief, { vouching })).rejects.toThrow();
});

test('a change of the members does not say who the users are that stay', async () => {
  const device = newOwner();
  const users = { voucher: voucherKey.name, subjects: { [userId]: 'ann' } };
  const before = quorum('quorum', { threshold: 1, publicKeys: [device.publicKey], userIds: [userId], users });
  const wallet = await server.walletOf({ owner: before });
  const bobId = 'did:service:bob';
  const request = { method: 'PATCH', path: '/v1/key_quorums/quorum', body: { user_ids: [userId, bobId] } };
  const evidence = signedBy([device], request);
  const [bob, ann, eve, old] = [
    await keyFor(await tokenOf({ uid: 'bob' })),
    await keyFor(await tokenOf()),
    await keyFor(await tokenOf({ uid: 'eve' })),
    await keyFor(await tokenOf(), { expiresAtMs: nowMs }),
  ];
  const vouching = { key: voucherKey, vouchers: [bob, ann, eve].map(({ voucher }) => voucher) };
  const changed = async (change: Partial<QuorumChange>) => ({
    vouching,
    quorums: [
      await server.changedQuorum(before, { evidence, userKeys: {}, quorums: [], ...change }, vouching),
    ],
  });
  const honest = await changed({ subjects: { [userId]: 'ann', [bobId]: 'bob' } });
  for (const { key } of [bob, ann]) {
    await expect(signs(wallet, key!, honest)).resolves.toHaveProperty('signature');
  }
  await expect(signs(wallet, eve.key!, honest)).rejects.toThrow();
  // Who stays is pinned already, and who is added at this moment, not later.
  const forged = await changed({ subjects: { [userId]: 'eve' } });
  for (const { key } of [bob, eve]) await expect(signs(wallet, key!, forged)).rejects.toThrow();
  const [record] = honest.quorums as [QuorumRecord];
  const later = { ...record, changes: [{ ...record.changes[0]!, subjects: { [bobId]: 'eve' } }] };
  await expect(signs(wallet, eve.key!, { vouching, quorums: [later] })).rejects.toThrow();
  // A user signs a change with a key that the key store vouches for, while it lives.
  const by = ({ key, voucher }: typeof ann) =>
    changed({
      ...{ evidence: signedBy([key!], request), vouchers: [voucher!], subjects: { [bobId]: 'bob' } },
      userKeys: { [userId]: [key!.publicKey] },
    });
  await expect(signs(wallet, bob.key!, await by(ann))).resolves.toHaveProperty('signature');
  await expect(by(eve)).rejects.toThrow();
  await expect(by(old)).rejects.toThrow();
});
