import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { SignJWT } from 'jose';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Tables } from '../../../src/domain/tables.ts';
import type { OperationId } from '../../../src/generated/operations.ts';
import type { OperationContext } from '../../../src/ports/operation-context.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type RunInput, type TestOperations } from '../../support/run-operations.ts';
import { newOwner } from '../../support/signer/owner.ts';

// Someone who can write to the database tries to act for a user who is a member of a key quorum. The key store
// verifies the tokens of the app's own login, and vouches for the keys that it draws for them.

const login = generateKeyPairSync('rsa', { modulusLength: 2048 });
const hourMs = 3_600_000;

/** Base64 PKCS #8 and SubjectPublicKeyInfo. */
interface Key {
  readonly privateKey: string;
  readonly publicKey: string;
}

function keyOf({ privateKey, publicKey }: { privateKey: KeyObject; publicKey: string }): Key {
  return { publicKey, privateKey: privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64') };
}

describe.each(databaseKinds)('on %s', (kind) => {
  let server: TestOperations;
  beforeAll(async () => {
    server = await openOperations(kind, {
      login: {
        keys: [{ algorithm: 'RS256', kid: undefined, key: login.publicKey }],
        userIdClaim: 'sub',
        audiences: [],
      },
    });
    await inDatabase((em) =>
      em
        .getKysely<Tables>()
        .updateTable('apps')
        .set({ settings: JSON.stringify({ jwt_auth: jwtAuth(login.publicKey) }) })
        .execute(),
    );
  });
  afterAll(() => server[Symbol.asyncDispose]());

  const jwtAuth = (key: KeyObject) => ({
    ...{ user_id_claim: 'sub', audiences: [] },
    verification_key: key.export({ format: 'pem', type: 'spki' }).toString(),
  });

  async function run(id: OperationId, input: RunInput, by?: Key) {
    const answer = await server.run(id, {
      ...input,
      ...(by === undefined ? {} : { signWith: [by.privateKey] }),
    });
    return answer as { status: number; body: Record<string, string> & { code?: string } };
  }

  async function made(id: OperationId, body: object): Promise<string> {
    const answer = await run(id, { body });
    expect(answer, JSON.stringify(answer.body)).toHaveProperty('status', 200);
    return answer.body.id!;
  }

  const newUser = (subject: string): Promise<string> =>
    made('createUser', { linked_accounts: [{ type: 'custom_auth', custom_user_id: subject }] });

  const tokenOf = (subject: string, claims: object = {}, by = login.privateKey): Promise<string> =>
    new SignJWT({ sub: subject, ...claims })
      .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
      .setExpirationTime(Math.floor(server.clock.nowMs / 1000) + 3600)
      .sign(by);

  /** A key that the user is handed for a token. */
  async function keyFor(token: string): Promise<Key> {
    const answer = await run('authenticateWallets', { body: { user_jwt: token } });
    expect(answer, JSON.stringify(answer.body)).toHaveProperty('status', 200);
    const privateKey = answer.body.authorization_key!;
    const key = createPublicKey(
      createPrivateKey({ key: Buffer.from(privateKey, 'base64'), format: 'der', type: 'pkcs8' }),
    );
    return { privateKey, publicKey: key.export({ format: 'der', type: 'spki' }).toString('base64') };
  }

  async function signs(walletId: string, by: Key, message = 'hello') {
    const body = { method: 'personal_sign', params: { message, encoding: 'utf-8' } };
    return run('walletRpc', { path: { wallet_id: walletId }, body }, by);
  }

  async function inDatabase<T>(work: (em: OperationContext['em']) => Promise<T>): Promise<T> {
    return server.database.orm.em.fork().transactional((em) => work(em as OperationContext['em']));
  }

  type Rows = Record<string, Record<string, unknown>>;

  /** Writes to rows behind the back of the server. Result: puts back what was there. */
  async function alter(
    table: keyof Tables & string,
    where: readonly [string, string],
    change: Record<string, unknown>,
  ): Promise<() => Promise<unknown>> {
    const column = sql.ref(where[0]);
    const write = (values: Record<string, unknown>, named: unknown = where[1]) =>
      inDatabase(async (em) => {
        const update = em.getKysely<Rows>().updateTable(table).set(values).where(column, '=', named);
        expect((await update.executeTakeFirst()).numUpdatedRows).toBeGreaterThan(0n);
      });
    const before = await inDatabase((em) =>
      em
        .getKysely<Rows>()
        .selectFrom(table)
        .select(Object.keys(change))
        .where(column, '=', where[1])
        .executeTakeFirstOrThrow(),
    );
    await write(change);
    return () => write(before, change[where[0]] ?? where[1]);
  }

  let count = 0;
  let ann: { id: string; subject: string };
  let walletId: string;
  let ownerId: string;
  beforeEach(async () => {
    count += 1;
    const subject = `ann-${count}`;
    ann = { subject, id: await newUser(subject) };
    const wallet = await run('createWallet', {
      body: { chain_type: 'ethereum', owner: { user_id: ann.id } },
    });
    walletId = wallet.body.id!;
    ownerId = wallet.body.owner_id!;
  });

  test('the user signs with keys for tokens of the login, until they expire', async () => {
    const key = await keyFor(await tokenOf(ann.subject));
    expect((await signs(walletId, key)).status).toBe(200);
    server.clock.nowMs += hourMs;
    expect((await signs(walletId, key)).status).toBe(401);
    const fresh = await keyFor(await tokenOf(ann.subject));
    expect((await signs(walletId, fresh)).status).toBe(200);
  });

  test('rows that are written behind the back of the server do not make another key the user’s', async () => {
    const key = await keyFor(await tokenOf(ann.subject));
    const thief = keyOf(newOwner());
    const stranger = await newUser(`stranger-${count}`);
    await made('createWallet', { chain_type: 'ethereum', owner: { user_id: stranger } });
    const its = await keyFor(await tokenOf(`stranger-${count}`));
    const voucherOf = async (of: Key) =>
      String(
        (
          await inDatabase((em) =>
            em
              .getKysely<Tables>()
              .selectFrom('user_keys')
              .select('voucher')
              .where('public_key', '=', of.publicKey)
              .executeTakeFirstOrThrow(),
          )
        ).voucher,
      );
    const [own, strange] = [await voucherOf(key), await voucherOf(its)];
    const forged = (change: object) => {
      const { content, tag } = JSON.parse(own) as { content: string; tag: string };
      return JSON.stringify({ tag, content: JSON.stringify({ ...JSON.parse(content), ...change }) });
    };
    const mine = ['public_key', key.publicKey] as const;
    const attacks: (readonly [Key, ...Parameters<typeof alter>])[] = [
      // The key of the user is another one.
      [thief, 'user_keys', mine, { public_key: thief.publicKey }],
      [
        thief,
        'user_keys',
        mine,
        { public_key: thief.publicKey, voucher: forged({ publicKey: thief.publicKey }) },
      ],
      // A key of another user.
      [its, 'user_keys', ['public_key', its.publicKey], { user_id: ann.id }],
      [its, 'user_keys', mine, { public_key: its.publicKey, voucher: strange }],
      [its, 'key_quorum_members', ['key_quorum_id', ownerId], { member: stranger }],
      [
        its,
        'key_quorum_members',
        ['key_quorum_id', ownerId],
        { member: stranger, subject: `stranger-${count}` },
      ],
      // The key quorum does not pin its users.
      [thief, 'key_quorums', ['id', ownerId], { voucher: null }],
      // The wallet has no authority.
      [its, 'wallet_keys', ['wallet_id', walletId], { authority: null }],
    ];
    for (const [by, ...change] of attacks) {
      const undo = await alter(...change);
      const outcome = await signs(walletId, by, 'robbery').catch((error: Error) => ({ status: error.name }));
      expect(['UnauthorizedUseError', 'KeyStoreError', 401], JSON.stringify(change)).toContain(
        outcome.status,
      );
      await undo();
    }
    // Several rows at once: the thief is a member, by a key quorum that does not pin, with a key that the server knows.
    const undo = [
      await alter('key_quorums', ['id', ownerId], { voucher: null }),
      await alter('user_keys', mine, { public_key: thief.publicKey, voucher: null }),
    ];
    await expect(signs(walletId, thief, 'robbery')).rejects.toThrow('lacks signatures');
    for (const back of undo) await back();
    expect((await signs(walletId, key)).status).toBe(200);
  });

  test('a login that the operator has not configured gives keys that do not count', async () => {
    const other = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const settings = JSON.stringify({ jwt_auth: jwtAuth(other.publicKey) });
    const undo = await alter('apps', ['id', server.app.id], { settings });
    // The server believes the settings in its database.
    const key = await keyFor(await tokenOf(ann.subject, {}, other.privateKey));
    await undo();
    expect((await signs(walletId, key)).body).toMatchObject({ code: 'no_valid_user_session_keys' });
    const account = await alter('linked_accounts', ['subject', ann.subject], { subject: `mallory-${count}` });
    const mallory = await keyFor(await tokenOf(`mallory-${count}`));
    await account();
    // The server sees that the key is vouched for as another user; where its rows are altered, the key store does.
    expect((await signs(walletId, mallory)).status).toBe(401);
    const renamed = { subject: `mallory-${count}` };
    const member = await alter('key_quorum_members', ['key_quorum_id', ownerId], renamed);
    await expect(signs(walletId, mallory)).rejects.toThrow('lacks signatures');
    await member();
    const ofMallory = ['public_key', mallory.publicKey] as const;
    const { voucher } = await inDatabase((em) =>
      em
        .getKysely<Tables>()
        .selectFrom('user_keys')
        .select('voucher')
        .where('public_key', '=', mallory.publicKey)
        .executeTakeFirstOrThrow(),
    );
    const forged = String(voucher).replace(`mallory-${count}`, ann.subject);
    expect(forged).not.toBe(voucher);
    await alter('user_keys', ofMallory, { voucher: forged });
    await expect(signs(walletId, mallory)).rejects.toThrow('lacks signatures');
  });

  test('a token that names its recipient is not good for another one', async () => {
    const named = await keyFor(await tokenOf(ann.subject, { cnf: { jkt: 'x'.repeat(43) } }));
    expect((await signs(walletId, named)).status).toBe(401);
  });

  test('users are members beside keys, and are added, removed and replaced', async () => {
    const device = keyOf(newOwner());
    const bob = await newUser(`bob-${count}`);
    const quorumId = await made('createKeyQuorum', {
      ...{ public_keys: [device.publicKey], user_ids: [ann.id], authorization_threshold: 1 },
    });
    const shared = await made('createWallet', { chain_type: 'ethereum', owner_id: quorumId });
    const annKey = await keyFor(await tokenOf(ann.subject));
    expect((await signs(shared, annKey)).status).toBe(200);
    const path = { key_quorum_id: quorumId };
    // A change that only renames it leaves the rows as they are.
    expect((await run('updateKeyQuorum', { path, body: { display_name: 'us' } }, device)).status).toBe(200);
    expect((await signs(shared, annKey)).status).toBe(200);
    const added = await run('updateKeyQuorum', { path, body: { user_ids: [ann.id, bob] } }, annKey);
    expect(added.status).toBe(200);
    const bobKey = await keyFor(await tokenOf(`bob-${count}`));
    expect((await signs(shared, bobKey)).status).toBe(200);
    // The change was signed by a key that has expired since.
    server.clock.nowMs += hourMs;
    const laterBob = await keyFor(await tokenOf(`bob-${count}`));
    expect((await signs(shared, laterBob)).status).toBe(200);
    const removed = await run('updateKeyQuorum', { path, body: { user_ids: [bob] } }, laterBob);
    expect(removed.status).toBe(200);
    const laterAnn = await keyFor(await tokenOf(ann.subject));
    expect((await signs(shared, laterAnn)).status).toBe(401);

    const change = await inDatabase((em) =>
      em
        .getKysely<Tables>()
        .selectFrom('key_quorum_changes')
        .select('change')
        .where('key_quorum_id', '=', quorumId)
        .where('position', '=', 0)
        .executeTakeFirstOrThrow(),
    );
    const thief = keyOf(newOwner());
    const forged = JSON.parse(change.change) as { userKeys: object; vouchers: object[] };
    const undo = await alter('key_quorum_changes', ['key_quorum_id', quorumId], {
      change: JSON.stringify({ ...forged, userKeys: { [ann.id]: [thief.publicKey] }, vouchers: [] }),
    });
    await expect(signs(shared, laterBob)).rejects.toThrow();
    await undo();
  });
});
