import { constants, createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import type { QuorumChange, QuorumRecord } from '../../../src/engine/authorization/quorum-records.ts';
import type { StoredVoucherKey, Voucher } from '../../../src/engine/authorization/user-vouchers.ts';
import { hpkeRecipientFromSeed } from '../../../src/engine/crypto/hpke.ts';
import {
  type CompromisedServer,
  compromisedServer,
  quorum,
  type SealedWallet,
} from '../../support/signer/compromised-server.ts';
import { type Owner, ownerOf, signedBy } from '../../support/signer/owner.ts';

// A compromised server has no token that the login has issued for it, or keeps what it has seen of earlier ones, and
// makes its own tokens, members and times from that.

const startMs = 1_900_000_000_000;
const hourMs = 3_600_000;
const login = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const annId = 'did:service:ann';
const bobId = 'did:service:bob';

let nowMs = startMs;
let server: CompromisedServer;
let voucherKey: StoredVoucherKey & { readonly name: string };
beforeEach(async () => {
  nowMs = startMs;
  const keys = [
    { algorithm: 'ES256', kid: 'one', key: login.publicKey },
    { algorithm: 'RS256', kid: undefined, key: rsa.publicKey },
  ] as const;
  const own = { keys, userIdClaim: 'uid', audiences: ['acme'] };
  const theirs = { ...own, audiences: ['globex'] };
  server = await compromisedServer(
    () => nowMs,
    new Map([
      ['acme', own],
      ['globex', theirs],
    ]),
  );
  const binding = { purpose: 'voucher-key', rowId: 'key', appId: 'acme' };
  const { parts, json } = await server.call('createVoucherKey', [], { binding });
  const [sealedSecret, wrappedDataKey] = parts.map((part) => Buffer.from(part).toString('base64'));
  const seal = { sealedSecret: sealedSecret!, wrappedDataKey: wrappedDataKey!, masterKeyId: 'test' };
  voucherKey = { id: 'key', name: (json as { name: string }).name, seal };
  return server.close;
});

const base64url = (text: string | Buffer) => Buffer.from(text).toString('base64url');

/** A token of this text, so that it can contain what no library writes. */
function tokenOf(
  header: object,
  payload: string,
  by: KeyObject | Buffer = login.privateKey,
  options: object = {},
): string {
  const signed = `${base64url(JSON.stringify(header))}.${base64url(payload)}`;
  const signature = Buffer.isBuffer(by)
    ? createHmac('sha256', by).update(signed).digest()
    : sign('sha256', Buffer.from(signed), { key: by, dsaEncoding: 'ieee-p1363', ...options });
  return `${signed}.${base64url(signature)}`;
}

const es256 = { alg: 'ES256', kid: 'one' };
const expires = startMs / 1000 + 60;
const claims = (over: object = {}) => JSON.stringify({ uid: 'ann', aud: 'acme', exp: expires, ...over });

/** Asks for a key of a user, who is handed it as it is. */
async function keyFor(token: string, asked: object = {}, recipient?: Uint8Array) {
  const ofLogin = { appId: 'acme', token, expiresAtMs: nowMs + hourMs, voucherKey, ...asked };
  const parts = recipient === undefined ? [] : [recipient];
  const { json } = await server.call('createUserKey', parts, { login: ofLogin });
  const { privateKey, voucher } = json as { privateKey?: string; voucher?: Voucher };
  return { key: privateKey === undefined ? undefined : ownerOf(privateKey), voucher };
}

const keyOf = async (uid: string, over: object = {}) => {
  const { key, voucher } = await keyFor(tokenOf(es256, claims({ uid, exp: nowMs / 1000 + 60, ...over })));
  return { key: key!, voucher: voucher! };
};

const subjectOf = ({ content }: Voucher) => (JSON.parse(content) as { subject: string }).subject;

const hello = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };

/** Whether these keys sign for a wallet. */
function signs(wallet: SealedWallet, by: readonly Owner[], vouchers: readonly Voucher[], over: object = {}) {
  const path = `/v1/wallets/${wallet.binding.rowId}/rpc`;
  const evidence = signedBy(by, { path, body: hello });
  const { authority, quorums } = wallet;
  const use = { authority, quorums, userKeys: {}, evidence, vouching: { key: voucherKey, vouchers } };
  return server.signs(wallet, hello, { ...use, ...over });
}

const lacks = 'lacks signatures';

const pinned = (subjects: Readonly<Record<string, string>>, threshold: number | null = 1): QuorumRecord =>
  quorum('quorum', {
    ...{ threshold, userIds: Object.keys(subjects) },
    users: { voucher: voucherKey.name, subjects },
  });

test('the algorithm and the key of a token are those of the login', async () => {
  const pem = login.publicKey.export({ format: 'pem', type: 'spki' });
  const der = login.publicKey.export({ format: 'der', type: 'spki' });
  const thief = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = thief.publicKey.export({ format: 'jwk' });
  const unsigned = `${base64url('{"alg":"none"}')}.${base64url(claims())}.`;
  const refused = {
    'alg none': unsigned,
    'alg None': unsigned.replace(base64url('{"alg":"none"}'), base64url('{"alg":"None"}')),
    'HS256 with the public key, PEM': tokenOf({ alg: 'HS256', kid: 'one' }, claims(), Buffer.from(pem)),
    'HS256 with the public key, DER': tokenOf({ alg: 'HS256' }, claims(), der),
    'ES256 by the name of another algorithm': tokenOf({ alg: 'RS256', kid: 'one' }, claims()),
    'RS256 by the name of ES256': tokenOf(es256, claims(), rsa.privateKey),
    'PS256 for RS256': tokenOf({ alg: 'PS256' }, claims(), rsa.privateKey, {
      padding: constants.RSA_PKCS1_PSS_PADDING,
      saltLength: 32,
    }),
    'ES384 for ES256': tokenOf({ alg: 'ES384', kid: 'one' }, claims()),
    'a key in the header': tokenOf({ ...es256, jwk }, claims(), thief.privateKey),
    'the address of a key': tokenOf(
      { ...es256, jku: 'https://evil.example', x5u: 'https://evil.example' },
      claims(),
      thief.privateKey,
    ),
    'a key id that is a list': tokenOf({ alg: 'ES256', kid: ['one'] }, claims()),
    'a key id of a file': tokenOf({ alg: 'ES256', kid: '../../dev/null' }, claims()),
    'an unknown extension': tokenOf({ ...es256, crit: ['x'], x: 1 }, claims()),
    'a payload that is not encoded': tokenOf({ ...es256, crit: ['b64'], b64: false }, claims()),
    'a fourth part': `${tokenOf(es256, claims())}.x`,
    'no signature': tokenOf(es256, claims()).replace(/[^.]*$/, ''),
  };
  for (const [what, token] of Object.entries(refused)) {
    expect((await keyFor(token)).voucher, what).toBeUndefined();
  }
  expect((await keyFor(tokenOf({ alg: 'ES256' }, claims()))).voucher).toBeDefined();
});

test('a token has an end, and is for this app and this user', async () => {
  const refused = {
    'no end': claims({ exp: undefined }),
    'an end that is a text': claims({ exp: String(expires) }),
    'an end that is a list': claims({ exp: [expires] }),
    'an end that is nothing': claims({ exp: null }),
    'it ends now': claims({ exp: startMs / 1000 }),
    'it begins later': claims({ nbf: startMs / 1000 + 30 }),
    'no audience': claims({ aud: undefined }),
    'other audiences': claims({ aud: ['globex', 'acme.example'] }),
    'an audience that begins like ours': claims({ aud: 'acme ' }),
    'an audience in capitals': claims({ aud: 'ACME' }),
    'another claim names the user': claims({ uid: undefined, sub: 'ann' }),
    'a list of users': claims({ uid: ['ann'] }),
    'an object': claims({ uid: { toString: 'ann' } }),
    yes: claims({ uid: true }),
    'a number that is not exact': `{"uid":9007199254740993,"aud":"acme","exp":${expires}}`,
    'a fraction': claims({ uid: 1.5 }),
    'a number beyond all': `{"uid":1e999,"aud":"acme","exp":${expires}}`,
    'no JSON': 'ann',
    'no object': '"ann"',
  };
  for (const [what, payload] of Object.entries(refused)) {
    expect((await keyFor(tokenOf(es256, payload))).voucher, what).toBeUndefined();
  }
  for (const over of [{ aud: ['globex', 'acme'] }, { exp: 1e15 }]) {
    const { voucher } = await keyFor(tokenOf(es256, claims(over)));
    // However long the token lives.
    expect(JSON.parse(voucher!.content)).toMatchObject({ subject: 'ann', expiresAtMs: startMs + hourMs });
  }
  expect(subjectOf((await keyFor(tokenOf(es256, claims({ uid: 42 })))).voucher!)).toBe('42');
});

test('a token that names its recipient is for no other one, however the recipient is written', async () => {
  const { publicKeyBytes } = await hpkeRecipientFromSeed(new Uint8Array(32).fill(7));
  const others = [{}, null, 'x', { jwk: {} }, { jkt: null }, { jkt: '' }, { jkt: undefined, kid: 'one' }];
  for (const cnf of others) {
    const token = tokenOf(es256, claims({ cnf }));
    for (const recipient of [undefined, publicKeyBytes]) {
      const { voucher } = await keyFor(token, {}, recipient);
      expect(voucher, JSON.stringify(cnf)).toBeUndefined();
    }
  }
});

test('no time that the server asks for makes a key count longer than an hour', async () => {
  const wallet = await server.walletOf({ owner: pinned({ [annId]: 'ann' }) });
  const token = tokenOf(es256, claims({ exp: startMs / 1000 + 1e6 }));
  const times = [undefined, null, 'NaN', '1e400', 1e300, -1, {}, [], startMs + 100 * hourMs];
  const keys = [];
  for (const expiresAtMs of times) keys.push(await keyFor(token, { expiresAtMs }));
  nowMs = startMs + hourMs;
  for (const [index, { key, voucher }] of keys.entries()) {
    await expect(signs(wallet, [key!], [voucher!]), String(times[index])).rejects.toThrow(lacks);
  }
  nowMs -= 1;
  await expect(signs(wallet, [keys.at(-1)!.key!], [keys.at(-1)!.voucher!])).resolves.toBeDefined();
});

test('what a key has signed while it lived does not change members once it has expired', async () => {
  const before = pinned({ [annId]: 'ann' });
  const wallet = await server.walletOf({ owner: before });
  const [ann, bob] = [await keyOf('ann'), await keyOf('bob')];
  const request = { method: 'PATCH', path: '/v1/key_quorums/quorum', body: { user_ids: [annId, bobId] } };
  const change: QuorumChange = {
    ...{ evidence: signedBy([ann.key], request), userKeys: { [annId]: [ann.key.publicKey] } },
    ...{ quorums: [], vouchers: [ann.voucher], subjects: { [bobId]: 'bob' } },
  };
  const vouching = { key: voucherKey, vouchers: [] };
  nowMs = startMs + hourMs;
  await expect(server.changedQuorum(before, change, vouching)).rejects.toThrow('has expired');
  // Nor under a later end, which the signer has not vouched for.
  const content = JSON.stringify({ ...JSON.parse(ann.voucher.content), expiresAtMs: nowMs + hourMs });
  const vouchers = [{ ...ann.voucher, content }];
  await expect(server.changedQuorum(before, { ...change, vouchers }, vouching)).rejects.toThrow(lacks);
  nowMs = startMs;
  const record = await server.changedQuorum(before, change, vouching);
  // What the signer has seen in time stays, whatever has expired since.
  nowMs = startMs + hourMs;
  const late = await keyOf('bob');
  const quorums = { quorums: [record] };
  await expect(signs(wallet, [late.key], [late.voucher], quorums)).resolves.toHaveProperty('signature');
  await expect(signs(wallet, [bob.key], [bob.voucher], quorums)).rejects.toThrow(lacks);
});

test('a user counts once, by whatever keys and under whatever ids', async () => {
  const [first, second, bob] = [await keyOf('ann'), await keyOf('ann'), await keyOf('bob')];
  const vouchers = [first, second, bob].map(({ voucher }) => voucher);
  const both = { [annId]: 'ann', [bobId]: 'bob' };
  // As the server says it, bob has the account of ann.
  const same = { [annId]: 'ann', [bobId]: 'ann' };
  for (const threshold of [2, null]) {
    const wallet = await server.walletOf({ owner: pinned(both, threshold) });
    await expect(signs(wallet, [first.key, bob.key], vouchers)).resolves.toHaveProperty('signature');
    await expect(signs(wallet, [first.key, second.key], vouchers)).rejects.toThrow(lacks);
    await expect(signs(wallet, [first.key, first.key], vouchers)).rejects.toThrow(lacks);
    const alone = await server.walletOf({ owner: pinned(same, threshold) });
    await expect(signs(alone, [first.key, second.key], [...vouchers, ...vouchers])).rejects.toThrow(lacks);
  }
});

test('a threshold that is no number of members does not make a key quorum easier', async () => {
  const ann = await keyOf('ann');
  const both = { [annId]: 'ann', [bobId]: 'bob' };
  for (const threshold of [1.5, 3, 1e300, '2', [2]]) {
    const wallet = await server.walletOf({ owner: pinned(both, threshold as number) });
    await expect(signs(wallet, [ann.key], [ann.voucher]), String(threshold)).rejects.toThrow(lacks);
  }
  for (const threshold of [0, -1, 0.5]) {
    const wallet = await server.walletOf({ owner: pinned(both, threshold) });
    await expect(signs(wallet, [], []), String(threshold)).rejects.toThrow(lacks);
  }
  const none = await server.walletOf({ owner: pinned({}, 0) });
  await expect(signs(none, [ann.key], [ann.voucher])).rejects.toThrow(lacks);
});

test('ids in the login are compared as they are', async () => {
  const wallet = await server.walletOf({ owner: pinned({ [annId]: 'Zo\u00eb' }) });
  const alike = [
    'Zoe\u0308',
    'zo\u00eb',
    ' Zo\u00eb',
    'Zo\u00eb ',
    'Zo\u00eb\u200b',
    'Zo\u00eb\0',
    'Zo\u0451',
  ];
  for (const uid of alike) {
    const { key, voucher } = await keyOf(uid);
    await expect(signs(wallet, [key], [voucher]), JSON.stringify(uid)).rejects.toThrow(lacks);
  }
  const own = await keyOf('Zo\u00eb');
  await expect(signs(wallet, [own.key], [own.voucher])).resolves.toHaveProperty('signature');
  // A member without an account is not that of a login, also if an account has the name of the member.
  for (const uid of ['constructor', '__proto__', 'toString', bobId]) {
    const { key, voucher } = await keyOf(uid);
    await expect(signs(wallet, [key], [voucher]), uid).rejects.toThrow(lacks);
    const inherited = quorum('quorum', {
      ...{ threshold: 1, userIds: [uid], users: { voucher: voucherKey.name, subjects: {} } },
    });
    const theirs = await server.walletOf({ owner: inherited });
    await expect(signs(theirs, [key], [voucher]), uid).rejects.toThrow(lacks);
  }
});

test('the voucher key of one app does not vouch for users of another one', async () => {
  const globex = tokenOf(es256, claims({ aud: 'globex' }));
  await expect(keyFor(globex, { appId: 'globex' })).rejects.toThrow();
  expect((await keyFor(globex)).voucher).toBeUndefined();
  const binding = { purpose: 'voucher-key', rowId: 'theirs', appId: 'globex' };
  const { parts } = await server.call('createVoucherKey', [], { binding });
  const [sealedSecret, wrappedDataKey] = parts.map((part) => Buffer.from(part).toString('base64'));
  const seal = { sealedSecret: sealedSecret!, wrappedDataKey: wrappedDataKey!, masterKeyId: 'test' };
  const asked = { appId: 'globex', voucherKey: { id: 'theirs', seal } };
  const { key, voucher } = await keyFor(globex, asked);
  expect(voucher).toBeDefined();
  const wallet = await server.walletOf({ owner: pinned({ [annId]: 'ann' }) });
  for (const vouching of [
    { key: voucherKey, vouchers: [voucher] },
    { key: asked.voucherKey, vouchers: [voucher] },
  ]) {
    await expect(signs(wallet, [key!], [], { vouching })).rejects.toThrow();
  }
});
