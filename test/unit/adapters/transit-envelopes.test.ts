import { randomBytes } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemEntropy } from '../../../src/adapters/runtime.ts';
import { isUnavailable } from '../../../src/errors.ts';
import {
  createMasterKeyEnvelopes,
  KeyStoreError,
  localMasterKey,
  MasterKeyUnavailableError,
} from '../../../src/keys/master-keys.ts';
import { fromSentError, toSentError } from '../../../src/keys/signer-errors.ts';
import { keepTokenAlive, transitClient, transitMasterKey } from '../../../src/keys/transit.ts';
import { startTransitService, type TransitService } from '../../support/transit-service.ts';

const binding = { purpose: 'ethereum', rowId: 'w', appId: 'a' };
const secret = Buffer.from('a secret of thirty-three bytes...');

let service: TransitService;
beforeEach(async () => {
  service = await startTransitService('wallet keys');
});
afterEach(() => service[Symbol.asyncDispose]());

const clientOf = (more: object = {}) =>
  transitClient({ url: service.url, key: 'wallet keys', token: service.token, ...more });
const keyOf = (more: object = {}) => transitMasterKey(clientOf(more));
const envelopesOf = (more: object = {}) =>
  createMasterKeyEnvelopes({ masterKeys: [keyOf(more)], entropy: systemEntropy });
type Envelopes = ReturnType<typeof envelopesOf>;
const open = (envelopes: Envelopes, sealed: Awaited<ReturnType<Envelopes['seal']>>, under = binding) =>
  envelopes.withSecret(sealed, under, (bytes) => Buffer.from(bytes).toString());

async function failureOf(work: Promise<unknown>): Promise<KeyStoreError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(KeyStoreError);
  return error as KeyStoreError;
}

describe('envelopes with the key of a key management service', () => {
  test('opens what it sealed; the service receives data keys and never a secret', async () => {
    const envelopes = envelopesOf();
    const sealed = await envelopes.seal(secret, binding);
    expect(sealed.masterKeyId).toBe('transit:wallet keys');
    expect(Buffer.from(sealed.wrappedDataKey).toString()).toMatch(/^vault:v1:[A-Za-z0-9+/]+=*$/);
    expect(await open(envelopes, sealed)).toBe(secret.toString());
    expect(service.requests.map(({ path }) => path)).toEqual([
      '/v1/transit/encrypt/wallet%20keys',
      '/v1/transit/decrypt/wallet%20keys',
    ]);
    const [wrapped] = service.requests;
    expect(Buffer.from(wrapped?.body.plaintext ?? '', 'base64')).toHaveLength(32);
    expect(Buffer.from(wrapped?.body.associated_data ?? '', 'base64').toString()).toContain('ethereum');
    expect(JSON.stringify(service.requests)).not.toContain(secret.toString('base64').slice(0, 20));
  });

  test('envelopes with the key of a key management service: opens nothing under another binding or with a changed byte', async () => {
    const envelopes = envelopesOf();
    const sealed = await envelopes.seal(secret, binding);
    for (const other of [{ rowId: 'x' }, { appId: 'b' }, { purpose: 'solana' }]) {
      const { message } = await failureOf(open(envelopes, sealed, { ...binding, ...other }));
      expect(message).toBe('the key management service of `transit:wallet keys` refused to decrypt (400)');
    }
    const changed = Buffer.from(sealed.sealedSecret);
    changed[15] = changed[15]! ^ 1;
    await failureOf(open(envelopes, { ...sealed, sealedSecret: changed }));
  });

  test('replaces a local key, which opens what it wrapped while it is configured', async () => {
    const local = localMasterKey('local', randomBytes(32), systemEntropy);
    const before = await createMasterKeyEnvelopes({ masterKeys: [local], entropy: systemEntropy }).seal(
      secret,
      binding,
    );
    const both = createMasterKeyEnvelopes({ masterKeys: [keyOf(), local], entropy: systemEntropy });
    expect(await open(both, before)).toBe(secret.toString());
    const moved = await both.rewrap(before, binding);
    expect(moved.masterKeyId).toBe('transit:wallet keys');
    expect(await open(envelopesOf(), moved)).toBe(secret.toString());
    expect((await failureOf(open(envelopesOf(), before))).message).toBe(
      'master key `local` is not configured',
    );
  });
});

describe('when the service fails, the error says so without secrets', () => {
  const place = 'the key management service of `transit:wallet keys`';

  /** Every way in which it could be printed. */
  function expectNoSecret(error: KeyStoreError, ...hidden: string[]): void {
    const printed = inspect(error, { depth: 20, showHidden: true }) + JSON.stringify(error) + error.stack;
    for (const text of [service.token, ...hidden]) expect(printed).not.toContain(text);
  }

  test('a wrong token is reported without the token', async () => {
    const error = await failureOf(envelopesOf({ token: 's.wrong-token' }).seal(secret, binding));
    expect(error.message).toBe(`${place} refused to encrypt (403)`);
    expectNoSecret(error, 's.wrong-token');
  });

  test('a token that is not a valid header value', async () => {
    const error = await failureOf(envelopesOf({ token: 's.first\ns.second' }).seal(secret, binding));
    expect(error.message).toMatch(/cannot be reached/);
    expectNoSecret(error, 's.first', 's.second');
  });

  test('an unknown key', async () => {
    const error = await failureOf(envelopesOf({ key: 'other' }).seal(secret, binding));
    expect(error.message).toBe('the key management service of `transit:other` refused to encrypt (404)');
  });

  test('nothing listens on the port', async () => {
    const gone = await startTransitService();
    await gone[Symbol.asyncDispose]();
    const error = await failureOf(envelopesOf({ url: gone.url }).seal(secret, binding));
    expect(error.message).toBe(`${place} cannot be reached (ECONNREFUSED)`);
    expectNoSecret(error);
  });

  test.each([
    ['no JSON', (dataKey: string) => `{"data":{"plaintext":"${dataKey}"`, 'JSON'],
    ['JSON with a stray word', (dataKey: string) => `{"data":{"plaintext":${dataKey}}}`, 'JSON'],
    ['a page', () => '<html>', 'JSON'],
    ['nothing of use', () => '{"data":{}}', '`plaintext`'],
    ['null', () => 'null', 'JSON'],
    ['a null in its place', () => '{"data":null}', '`plaintext`'],
  ])('its response is %s', async (_, answerOf, expected) => {
    const envelopes = envelopesOf();
    const sealed = await envelopes.seal(secret, binding);
    const dataKey = service.requests[0]!.body.plaintext!;
    service.interrupt((response) => response.end(answerOf(dataKey)));
    const error = await failureOf(open(envelopes, sealed));
    expect(error.message).toBe(`expected ${expected} from ${place}`);
    expectNoSecret(error, dataKey, dataKey.slice(0, 8));
  });

  test('its response is a data key of another length', async () => {
    const envelopes = envelopesOf();
    const sealed = await envelopes.seal(secret, binding);
    service.interrupt((response) => response.end(JSON.stringify({ data: { plaintext: 'c2hvcnQ=' } })));
    const error = await failureOf(open(envelopes, sealed));
    expect(error.message).toBe('expected a data key of 32 bytes from master key `transit:wallet keys`');
  });

  test('a service that disconnects or redirects is unreachable', async () => {
    service.interrupt((response) => {
      response.writeHead(200, { 'content-length': '100' }).write('{"data"');
      response.destroy();
    });
    expect((await failureOf(envelopesOf().seal(secret, binding))).message).toMatch(/cannot be reached \(/);
    service.interrupt((response) => response.writeHead(307, { location: `${service.url}/elsewhere` }).end());
    const error = await failureOf(envelopesOf().seal(secret, binding));
    expect(error.message).toMatch(/cannot be reached \(/);
    // The token is not carried along.
    expect(service.requests.map(({ path }) => path)).not.toContain('/elsewhere');
  });
});

describe('the token of a key management service', () => {
  test('the token of a key management service is read again from its file when the service refuses it', async () => {
    const tokenFile = join(mkdtempSync(join(tmpdir(), 'custos-test-')), 'token');
    writeFileSync(tokenFile, 'ended');
    const envelopes = envelopesOf({ token: 'ended', tokenFile });
    const refused = await failureOf(envelopes.seal(secret, binding));
    expect(refused.message).toContain('refused to encrypt (403)');
    expect(isUnavailable(refused)).toBe(true);
    writeFileSync(tokenFile, `${service.token}\n`);
    const sealed = await Promise.all([envelopes.seal(secret, binding), envelopes.seal(secret, binding)]);
    expect(await open(envelopes, sealed[1])).toBe(secret.toString());
    const asked = service.requests.length;
    await envelopes.seal(secret, binding);
    expect(service.requests).toHaveLength(asked + 1);
  });

  test('a service that is away or fails is unavailable; a secret that is not its own is an error', async () => {
    const envelopes = envelopesOf();
    const sealed = await envelopes.seal(secret, binding);
    service.interrupt((response) => response.writeHead(503).end());
    expect(isUnavailable(await failureOf(open(envelopes, sealed)))).toBe(true);
    service.interrupt(undefined);
    expect(isUnavailable(await failureOf(open(envelopes, sealed, { ...binding, appId: 'b' })))).toBe(false);
    const sent = fromSentError(toSentError(new MasterKeyUnavailableError('away')));
    expect(isUnavailable(sent)).toBe(true);
    expect(sent).toBeInstanceOf(KeyStoreError);
  });
});

test('the engine may have another mount and a namespace, which the token belongs to', async () => {
  await using elsewhere = await startTransitService('k', {
    mount: 'team a/transit',
    namespace: 'payments/eu',
  });
  const place = { url: elsewhere.url, key: 'k', token: elsewhere.token };
  const whole = { ...place, mount: 'team a/transit', namespace: 'payments/eu' };
  const envelopes = envelopesOf(whole);
  expect(await open(envelopes, await envelopes.seal(secret, binding))).toBe(secret.toString());
  expect(elsewhere.requests[0]!.path).toBe('/v1/team%20a/transit/encrypt/k');
  for (const lacking of [place, { ...whole, namespace: undefined }, { ...whole, mount: undefined }])
    await failureOf(
      envelopesOf({ mount: undefined, namespace: undefined, ...lacking }).seal(secret, binding),
    );
});

describe('a token that ends', () => {
  let nowS = 0;
  let reports: object[];
  let pauses: number[];
  beforeEach(async () => {
    await service[Symbol.asyncDispose]();
    service = await startTransitService('wallet keys', { nowS: () => nowS });
    [nowS, reports, pauses] = [0, [], []];
  });

  /** Keeps it alive while the time passes. `onTurn` is called before each pause. */
  async function live(turns: number, client = clientOf(), onTurn?: (turn: number) => void): Promise<void> {
    const ending = new AbortController();
    await keepTokenAlive(client, {
      signal: ending.signal,
      report: (fields, msg) => reports.push({ ...fields, msg }),
      pause: async (ms) => {
        pauses.push(ms);
        onTurn?.(pauses.length);
        nowS += ms / 1000;
        if (pauses.length >= turns) ending.abort();
      },
    });
  }
  const lease = (seconds: number, more: object = {}) =>
    Object.assign(service.lease, { seconds, renewable: true, endsAtS: nowS + seconds, ...more });
  const seals = () => envelopesOf().seal(secret, binding);

  test('a token that ends is renewed at half of its lease, for as long as the service lets it', async () => {
    lease(3_600);
    await live(20);
    expect(pauses).toEqual(Array(20).fill(1_800_000));
    expect(nowS).toBe(36_000);
    await seals();
    expect(reports).toEqual([]);
  });

  test('without renewal it is refused when its lease is over', async () => {
    lease(3_600);
    nowS = 3_600;
    expect(isUnavailable(await failureOf(seals()))).toBe(true);
  });

  test('a token that ends is reported once when it reaches its greatest lifetime, and replaced by the one in the file', async () => {
    const tokenFile = join(mkdtempSync(join(tmpdir(), 'custos-test-')), 'token');
    writeFileSync(tokenFile, service.token);
    lease(3_600, { latestS: 5_400 });
    await live(30, clientOf({ tokenFile }));
    const key = 'transit:wallet keys';
    expect(reports).toEqual([
      { key, ends_in_s: 1_800, msg: expect.stringMatching(/ends soon and cannot be renewed for longer$/) },
      {
        key,
        reason: 'the key management service refused lookup-self (403)',
        msg: 'the token of the key management service cannot be renewed',
      },
    ]);
    // The pauses after its end.
    expect(new Set(pauses.slice(-5))).toEqual(new Set([30_000]));
    lease(7_200, { latestS: Infinity });
    pauses = [];
    await live(2, clientOf({ token: 'ended', tokenFile }));
    expect(pauses).toEqual([3_600_000, 3_600_000]);
  });

  test('one that cannot renew itself is reported, unless others write it to a file', async () => {
    lease(600, { renewable: false });
    await live(1);
    expect(reports).toEqual([
      { key: 'transit:wallet keys', ends_in_s: 600, msg: expect.stringMatching(/is not renewable/) },
    ]);
    reports = [];
    lease(6_000, { renewable: false });
    await live(1, clientOf({ tokenFile: '/nonexistent' }));
    expect(reports).toEqual([]);
    expect(service.requests.map(({ path }) => path)).not.toContain('/v1/auth/token/renew-self');
  });

  test('a service that is away for a while costs no token', async () => {
    lease(3_600);
    await live(10, clientOf(), (turn) => {
      const isAway = turn >= 2 && turn < 5;
      service.interrupt(isAway ? (response) => response.writeHead(503).end('{"token":"no"}') : undefined);
    });
    await seals();
    expect(reports).toEqual([expect.objectContaining({ reason: expect.stringContaining('(503)') })]);
    expect(JSON.stringify(reports)).not.toContain(service.token);
  });

  test('one that does not end is left alone', async () => {
    await live(3);
    expect(service.requests.map(({ path }) => path)).toEqual(Array(3).fill('/v1/auth/token/lookup-self'));
    expect(reports).toEqual([]);
  });
});
