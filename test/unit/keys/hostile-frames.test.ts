import { randomBytes } from 'node:crypto';
import { duplexPair } from 'node:stream';
import fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { systemEntropy } from '../../../src/adapters/runtime.ts';
import { createFrameReader, encodeFrame, type Frame, frameKinds } from '../../../src/keys/frames.ts';
import { createKeyStore } from '../../../src/keys/key-operations.ts';
import { localMasterKey } from '../../../src/keys/master-keys.ts';
import { operationNames } from '../../../src/keys/protocol.ts';
import { serveConnection, sharedMemory } from '../../../src/keys/serve-connection.ts';
import { connectTo } from '../../../src/keys/signer-connection.ts';
import { longestSlice, MAX_SLICE_MS } from '../../support/monitoring/longest-slice.ts';
import { compromisedServer, quorum, useOf } from '../../support/signer/compromised-server.ts';
import { newOwner, payloadOf, signPayload } from '../../support/signer/owner.ts';

// A server under an attacker's control sends whatever it likes. Nothing ends the signer: an unhandled rejection or an
// exception in a listener would end its process, and fails the test.

const keyStore = createKeyStore({
  masterKeys: [localMasterKey('test', randomBytes(32), systemEntropy)],
  entropy: systemEntropy,
  signaturesPerRequest: 1,
});
const binding = { purpose: 'ethereum', rowId: 'wallet', appId: 'acme' };
const numberOf = (name: (typeof operationNames)[number]): number => operationNames.indexOf(name);

function serve(memory = sharedMemory(), report: (fields: object) => void = () => undefined) {
  const [ours, its] = duplexPair();
  serveConnection(its, { keyStore, masterKeyIds: ['test'], report }, memory);
  ours.on('error', () => undefined);
  return { ours, its };
}

/** The bytes of a call with this JSON text, which need not be JSON. */
function rawCall(operation: number, text: Buffer, parts: readonly Uint8Array[] = []): Buffer {
  const head = encodeFrame({ kind: frameKinds.call, id: 1, operation, parts, json: undefined });
  const bytes = Buffer.concat([head, text]);
  bytes.writeUInt32BE(bytes.length - 4);
  return bytes;
}

/** Sends bytes. Result: the first answer, or undefined if the connection is ended instead. */
async function answerTo(bytes: Buffer): Promise<Frame | undefined> {
  const { ours, its } = serve();
  const reader = createFrameReader();
  return new Promise((resolve) => {
    ours.on('data', (chunk: Buffer) => {
      const answer = reader.push(chunk).find(({ kind }) => kind !== frameKinds.hello);
      if (answer === undefined) return;
      ours.destroy();
      resolve(answer);
    });
    its.on('close', () => resolve(undefined));
    ours.write(bytes);
  });
}

const ended = (stream: NodeJS.EventEmitter) => new Promise<void>((resolve) => stream.once('close', resolve));

afterEach(() => vi.useRealTimers());

test('text that is not UTF-8 is no JSON: the connection is ended', async () => {
  const text = (fill: Buffer) =>
    Buffer.concat([Buffer.from('{"binding":{"purpose":"'), fill, Buffer.from('"}}')]);
  expect(
    await answerTo(rawCall(numberOf('createWalletKey'), text(Buffer.alloc(3_000_000, 0xff)))),
  ).toBeUndefined();
  expect(await answerTo(rawCall(0, text(Buffer.of(0xed, 0xa0, 0x80))))).toBeUndefined();
});

test.each(['purpose', 'rowId', 'appId', 'key', 'method', 'field'])(
  'an error does not repeat what was sent (%s)',
  async (name) => {
    const long = '\u{1F511}'.repeat(400_000);
    const sent = { ...binding, rowId: 'row', [name]: long };
    const key = await keyStore.createWalletKey({ ...binding, rowId: 'row' });
    const parts = [key.sealed.sealedSecret, key.sealed.wrappedDataKey];
    const task = {
      method: 'eth_signTransaction',
      params: { transaction: { [name]: long, to: long } },
      [name]: long,
    };
    const json = { key: 'test', ...task, binding: sent };
    const answer = await answerTo(
      encodeFrame({ kind: frameKinds.call, id: 1, operation: numberOf('signWithWallet'), parts, json }),
    );
    expect(answer?.kind).toBe(frameKinds.failure);
    expect(JSON.stringify(answer?.json).length).toBeLessThan(2_500);
  },
);

test.each([
  ['lists', '['],
  ['objects', '{"a":'],
])('JSON of two million nested %s ends the connection, without parsing it', async (_, open) => {
  const { user } = process.threadCpuUsage();
  expect(await answerTo(rawCall(0, Buffer.from(open.repeat(1_000_000))))).toBeUndefined();
  expect((process.threadCpuUsage().user - user) / 1000).toBeLessThan(2_000);
});

test('names of prototypes are names', async () => {
  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
    const text = `{"key":"test","binding":{"purpose":"${name}","rowId":"x","appId":"y","__proto__":{"authority":"z"}},"method":"${name}","params":{"__proto__":{"chain_id":1}},"use":{"authority":{"owner":"${name}","signers":[]}}}`;
    for (const [operation] of operationNames.entries()) {
      const answer = await answerTo(rawCall(operation, Buffer.from(text), [Buffer.of(1), Buffer.of(2)]));
      expect(answer?.kind ?? frameKinds.failure).toBeOneOf([frameKinds.failure, frameKinds.result]);
    }
  }
  expect(({} as { chain_id?: unknown }).chain_id).toBeUndefined();
});

const anyJson = fc.oneof(
  fc.json({ maxDepth: 4 }).map((text) => JSON.parse(text) as unknown),
  fc.record(
    {
      key: fc.constantFrom('test', '', null, 7),
      binding: fc.oneof(fc.constant(binding), fc.anything({ maxDepth: 1 })),
      authority: fc.oneof(fc.constant({ owner: 'x', signers: [] }), fc.anything({ maxDepth: 2 })),
      use: fc.anything({ maxDepth: 3 }),
      method: fc.constantFrom('personal_sign', 'raw_sign', 'eth_signTransaction', 'toString', 7),
      params: fc.anything({ maxDepth: 3 }),
      form: fc.constantFrom('phrase', 'private-key', '', 1),
      index: fc.constantFrom(0, -1, 1e308, 2 ** 53, '9'.repeat(1_000)),
      text: fc.string(),
    },
    { requiredKeys: [] },
  ),
);

const jsonText = (value: unknown): string | undefined => {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
};

test('any call is answered or ends the connection', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.nat({ max: 30 }),
      fc.array(fc.uint8Array({ maxLength: 80 }), { maxLength: 8 }),
      anyJson,
      async (operation, parts, json) => {
        const text = Buffer.from(jsonText(json) ?? 'null');
        const answer = await answerTo(rawCall(operation, text, parts));
        if (answer !== undefined) expect([frameKinds.result, frameKinds.failure]).toContain(answer.kind);
      },
    ),
    { numRuns: 400 },
  );
});

test('any bytes, and calls that are cut off, leave other connections as they are', async () => {
  const other = await connectTo(serve().ours);
  const call = encodeFrame({ kind: frameKinds.call, id: 1, operation: 3, parts: [], json: { binding } });
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), fc.nat({ max: call.length }), async (bytes, cut) => {
      const { ours, its } = serve();
      ours.resume();
      ours.write(Buffer.concat([call, Buffer.from(bytes)]));
      ours.end(call.subarray(0, cut));
      await ended(its);
    }),
    { numRuns: 200 },
  );
  expect((await other.call(3, [], { binding })).parts).toHaveLength(2);
  other.close();
});

test('a log that cannot be written ends no connection', async () => {
  const failing = () => {
    throw new Error('ENOSPC');
  };
  const { ours } = serve(sharedMemory(), failing);
  const connection = await connectTo(ours);
  await expect(connection.call(numberOf('signWithWallet'), [], null)).rejects.toThrow('the signer failed');
  expect((await connection.call(3, [], { binding })).parts).toHaveLength(2);
  connection.close();
});

describe('signatures of strangers', () => {
  const greeting = { message: 'hello', encoding: 'utf-8' };
  const asked = { path: '/v1/wallets/wallet/rpc', body: { method: 'personal_sign', params: greeting } };
  const payload = payloadOf(asked);
  const stranger = newOwner();
  const members = Array.from({ length: 10 }, () => newOwner().publicKey);
  const owners = quorum('owners', { publicKeys: members, threshold: 1 });
  /** Not one of them twice: what was verified is not verified again. */
  const forged = Array.from({ length: 800 }, () => signPayload(stranger, payload));

  /** How long calls with so many signatures each keep the thread at once, in ms, and how they end. */
  async function slices(calls: number, signatures: number) {
    const server = await compromisedServer(Date.now());
    const wallet = await server.walletOf({ owner: owners });
    const { result, longestMs } = await longestSlice(() =>
      Promise.allSettled(
        Array.from({ length: calls }, (_, index) => {
          const own = forged.slice(index * signatures, (index + 1) * signatures);
          const use = useOf(wallet, { requests: [{ payload, signatures: own }] });
          return server.signs(wallet, { method: 'personal_sign', params: greeting }, use);
        }),
      ),
    );
    server.close();
    const reasons = result.map((each) => (each.status === 'fulfilled' ? 'signed' : String(each.reason)));
    return { longestMs, reasons: [...new Set(reasons)] };
  }

  test('signatures of strangers are verified for a few milliseconds at a time, of however many calls', async () => {
    const { longestMs, reasons } = await slices(8, 100);
    expect(reasons).toEqual([expect.stringContaining('the request lacks signatures')]);
    expect(longestMs).toBeLessThan(MAX_SLICE_MS);
  });

  test('signatures of strangers are at most 600 in a call', async () => {
    const { longestMs, reasons } = await slices(1, 800);
    expect(reasons).toEqual([expect.stringContaining('expected at most 600 signatures, got 800')]);
    expect(longestMs).toBeLessThan(MAX_SLICE_MS);
  });
});

describe('memory', () => {
  test('the connection that holds the most is ended when all together hold too much', async () => {
    const memory = sharedMemory(200_000);
    const small = await connectTo(serve(memory).ours);
    const greedy = serve(memory);
    const frame = rawCall(0, Buffer.alloc(0), [Buffer.alloc(300_000)]);
    greedy.ours.write(frame.subarray(0, 150_000));
    await new Promise((resolve) => setImmediate(resolve));
    expect(greedy.its.destroyed).toBe(false);
    greedy.ours.write(frame.subarray(150_000, 250_000));
    await ended(greedy.its);
    expect((await small.call(3, [], { binding })).parts).toHaveLength(2);
    small.close();
  });

  test('memory: answers that are not read are held up to the limit', async () => {
    const memory = sharedMemory(100_000);
    const { ours, its } = serve(memory);
    const call = encodeFrame({ kind: frameKinds.call, id: 1, operation: 99, parts: [], json: undefined });
    const many = Buffer.concat(Array.from({ length: 500 }, () => call));
    const gone = ended(its);
    const sending = setInterval(() => ours.write(many), 1);
    await gone;
    clearInterval(sending);
    expect(its.writableLength).toBeLessThan(300_000);
  });

  test('many small values weigh what they take', () => {
    const text = Buffer.from(`[${Array.from({ length: 100_000 }, () => '{}').join()}]`);
    const [frame] = createFrameReader().push(rawCall(0, text));
    expect(frame!.weight).toBeGreaterThan(20 * text.length);
  });

  test('a frame that arrives byte by byte is held once', () => {
    const frame = rawCall(0, Buffer.alloc(0), [Buffer.alloc(200_000)]);
    const reader = createFrameReader();
    const before = process.memoryUsage();
    const kept: unknown[] = [];
    for (let at = 0; at < frame.length - 1; at += 1) kept.push(reader.push(Uint8Array.of(frame[at]!)).length);
    expect(reader.pending).toBe(frame.length - 1);
    const { external, arrayBuffers } = process.memoryUsage();
    expect(external + arrayBuffers - before.external - before.arrayBuffers).toBeLessThan(100_000_000);
    expect(reader.push(frame.subarray(-1))).toHaveLength(1);
  });

  test('a frame that does not arrive within ten seconds ends the connection; one that is slow does not', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const { ours, its } = serve();
    ours.resume();
    const call = encodeFrame({ kind: frameKinds.call, id: 1, operation: 99, parts: [], json: undefined });
    for (let second = 0; second < 30; second += 1) {
      ours.write(second % 2 === 0 ? call.subarray(0, 5) : call.subarray(5));
      await new Promise((resolve) => setImmediate(resolve));
      vi.advanceTimersByTime(1_000);
    }
    expect(its.destroyed).toBe(false);
    ours.write(call.subarray(0, 5));
    for (let second = 0; second < 12; second += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      vi.advanceTimersByTime(1_000);
    }
    expect(its.destroyed).toBe(true);
  });
});
