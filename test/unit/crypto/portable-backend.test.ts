import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { bytesToHex } from '../../../src/engine/crypto/encoding.ts';
import { ecBackend } from '../../../src/engine/crypto/secp256k1.ts';

const run = promisify(execFile);
const urlOf = (path: string): string => new URL(`../../../src/${path}`, import.meta.url).toString();

// A process in which the prebuilt addon cannot be loaded.
const withoutAddon = `
  const Module = require('node:module');
  const resolve = Module._resolveFilename;
  Module._resolveFilename = (request, ...rest) => {
    if (request.startsWith('#native/')) throw new Error('hidden');
    return resolve(request, ...rest);
  };
  const fill = (byte) => new Uint8Array(32).fill(byte);
  import(process.argv[1]).then(({ assertBackendsAgree, ecBackend }) => {
    assertBackendsAgree();
    const hex = (bytes) => Buffer.from(bytes).toString('hex');
    const { compact, recoveryId } = ecBackend.sign(fill(7), fill(9));
    const schnorr = hex(ecBackend.signSchnorr(fill(7), fill(9)));
    console.log(JSON.stringify({ name: ecBackend.name, compact: hex(compact), recoveryId, schnorr }));
  });
`;

test('without native code the signatures are the same', async () => {
  const { stdout } = await run(process.execPath, ['-e', withoutAddon, urlOf('engine/crypto/secp256k1.ts')]);
  const [digest, secret] = [new Uint8Array(32).fill(7), new Uint8Array(32).fill(9)];
  const { compact, recoveryId } = ecBackend.sign(digest, secret);
  expect(ecBackend.name).toBe('native');
  expect(JSON.parse(stdout)).toEqual({
    name: 'noble',
    compact: bytesToHex(compact),
    recoveryId,
    schnorr: bytesToHex(ecBackend.signSchnorr(digest, secret)),
  });
});

// An addon in which one operation returns another result.
const withFaultyAddon = `
  const Module = require('node:module');
  const [, , operation] = process.argv;
  const load = Module._load;
  Module._load = (request, ...rest) => {
    const loaded = load(request, ...rest);
    if (!request.startsWith('#native/')) return loaded;
    class Faulty extends loaded.Secp256k1 {
      [operation](output, ...inputs) {
        const result = super[operation](output, ...inputs);
        (output.signature ?? output)[31] ^= 1;
        return result;
      }
    }
    return { Secp256k1: Faulty };
  };
  import(process.argv[1]).then(({ startSandbox, startProduction, servedKeyStore }) => {
    const start = startSandbox ?? startProduction ?? servedKeyStore;
    return start({ logLevel: 'silent' }, { signer: new Promise(() => undefined) });
  });
`;

test.each([
  ['compose/sandbox', 'ecdsaSign', 'in `sign` on vector 2'],
  // Only Schnorr signatures need it.
  ['compose/serve', 'privateKeyTweakMul', 'expected the computed Schnorr signature to verify'],
  ['keys/serve-signer', 'ecdsaSign', 'in `sign` on vector 2'],
])(
  '%s does not start on an addon whose %s is wrong',
  { timeout: 60_000 },
  async (module, operation, reason) => {
    const program = ['-e', withFaultyAddon, urlOf(`${module}.ts`), operation];
    const started = run(process.execPath, program, { timeout: 60_000 });
    await expect(started).rejects.toThrow(reason);
  },
);
