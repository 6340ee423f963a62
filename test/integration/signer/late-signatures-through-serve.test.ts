import { generateKeyPairSync } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { SignJWT } from 'jose';
import { Client } from 'pg';
import { recoverMessageAddress } from 'viem/utils';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Proposed, signIntent } from '../../support/intents.ts';
import { newOwner, type Owner, ownerOf } from '../../support/signer/owner.ts';
import { type ServedWithSigner, serveWithSigner } from '../../support/signer/serve-with-signer.ts';

// Members sign intents at different times, over HTTPS, on a production server whose signer is a process of its own:
// what has expired meanwhile is asked for again, and no honest client may be answered with an internal error.

const login = generateKeyPairSync('ec', { namedCurve: 'P-256' });
let server: ServedWithSigner;
let database: Client;
beforeAll(async () => {
  server = await serveWithSigner({
    login: login.publicKey.export({ format: 'pem', type: 'spki' }).toString(),
  });
  database = new Client({ connectionString: server.databaseUrl });
  await database.connect();
  return async () => {
    await database.end();
    await server.end();
  };
});

const hello = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };

interface Intent extends Proposed {
  readonly status: string;
  readonly action_result?: { readonly status_code: number; readonly response_body: unknown };
}

async function done<Body>(...asked: Parameters<ServedWithSigner['call']>): Promise<Body> {
  const answer = await server.call(...asked);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body;
}

/** Proposes a use, or a change, until then, which production requires. */
function propose(path: string, body: object, untilMs = Date.now() + 3_600_000): Promise<Intent> {
  const method = path.endsWith('/rpc') ? undefined : 'PATCH';
  return done(`/v1/intents${path}`, body, { 'service-request-expiry': String(untilMs) }, method);
}

function authorize(intent: Intent, { privateKey }: Owner) {
  const key = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
  const signature = signIntent({ prefix: 'service', appId: server.app.id }, intent, key);
  const body = { signature, timestamp: Date.now() };
  return server.call(`/v1/intents/${intent.intent_id}/authorize`, body) as Promise<{
    status: number;
    body: Intent & { code?: string };
  }>;
}

async function keyFor(subject: string): Promise<Owner> {
  const token = await new SignJWT({ sub: subject })
    .setProtectedHeader({ alg: 'ES256', typ: 'JWT' })
    .setExpirationTime('1h')
    .sign(login.privateKey);
  const handed = await done<{ authorization_key: string }>('/v1/wallets/authenticate', { user_jwt: token });
  return ownerOf(handed.authorization_key);
}

/** The hour of the keys that users have so far is over. */
const expireKeys = () => database.query('update user_keys set expires_at_ms = $1', [Date.now() - 1]);

let count = 0;
let subject: string;
let device: Owner;
let quorumId: string;
let wallet: { id: string; address: string };
beforeEach(async () => {
  count += 1;
  subject = `ann-${count}`;
  device = newOwner();
  const linked = { linked_accounts: [{ type: 'custom_auth', custom_user_id: subject }] };
  const { id: ann } = await done<{ id: string }>('/v1/users', linked);
  const members = { public_keys: [device.publicKey], user_ids: [ann], authorization_threshold: 2 };
  quorumId = (await done<{ id: string }>('/v1/key_quorums', members)).id;
  wallet = await done('/v1/wallets', { chain_type: 'ethereum', owner_id: quorumId });
});

async function requireSigned({ action_result: result }: Intent): Promise<void> {
  const { response_body: answered } = result!;
  const { signature } = (answered as { data: { signature: `0x${string}` } }).data;
  const recovered = await recoverMessageAddress({ message: 'hello', signature });
  expect(recovered).toBe(wallet.address);
}

test('a wallet is used once both members have signed, one of them with two keys', async () => {
  const intent = await propose(`/wallets/${wallet.id}/rpc`, hello);
  for (const key of [await keyFor(subject), await keyFor(subject)]) {
    expect((await authorize(intent, key)).body.status).toBe('pending');
  }
  const last = await authorize(intent, device);
  expect(last.body).toMatchObject({ status: 'executed', action_result: { status_code: 200 } });
  await requireSigned(last.body);
});

describe('a member signs with a key that has expired when the other one signs', () => {
  const proposals: Record<string, () => Promise<Intent>> = {
    'a use of the wallet': () => propose(`/wallets/${wallet.id}/rpc`, hello),
    'a change of the key quorum': () =>
      propose(`/key_quorums/${quorumId}`, {
        public_keys: [device.publicKey],
        user_ids: [],
        authorization_threshold: 1,
      }),
    'a change of the wallet': () =>
      propose(`/wallets/${wallet.id}`, { owner: { public_key: device.publicKey } }),
  };

  test.each(Object.keys(proposals))('%s is carried out once the member has signed again', async (what) => {
    const intent = await proposals[what]!();
    expect((await authorize(intent, await keyFor(subject))).body.status).toBe('pending');
    await expireKeys();
    expect(await authorize(intent, device)).toMatchObject({ status: 200, body: { status: 'pending' } });
    const last = await authorize(intent, await keyFor(subject));
    expect(last).toMatchObject({
      status: 200,
      body: { status: 'executed', action_result: { status_code: 200 } },
    });
    if (what === 'a use of the wallet') return requireSigned(last.body);
    // The signer knows the change: the device alone is enough now.
    const next = await propose(`/wallets/${wallet.id}/rpc`, hello);
    const alone = await authorize(next, device);
    expect(alone.body).toMatchObject({ status: 'executed', action_result: { status_code: 200 } });
    await requireSigned(alone.body);
  });
});

test('an intent that has expired before the last signature is not carried out', async () => {
  const untilMs = Date.now() + 5_000;
  const intent = await propose(`/wallets/${wallet.id}/rpc`, hello, untilMs);
  expect((await authorize(intent, device)).body.status).toBe('pending');
  await pause(untilMs - Date.now() + 50);
  const late = await authorize(intent, await keyFor(subject));
  expect(late.status).toBe(400);
  const { rows } = await database.query(
    'select count(*)::int as uses from wallet_uses where wallet_id = $1',
    [wallet.id],
  );
  expect(rows).toEqual([{ uses: 0 }]);
});
