import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { bytesToHex } from '../../../src/crypto/encoding.ts';
import { schnorrSign } from '../../../src/crypto/schnorr.ts';
import { ecBackend } from '../../../src/crypto/secp256k1.ts';

// What a process sees where neither the prebuilt addon nor the WebAssembly module can be loaded.
const program = `
  const Module = require('node:module');
  const resolve = Module._resolveFilename;
  Module._resolveFilename = (request, ...rest) => {
    if (request === 'secp256k1/bindings' || request === 'tiny-secp256k1') throw new Error('hidden');
    return resolve(request, ...rest);
  };
  const fill = (byte) => new Uint8Array(32).fill(byte);
  Promise.all([import(process.argv[1]), import(process.argv[2])]).then(([ec, schnorr]) => {
    ec.assertBackendsAgree();
    const hex = (bytes) => Buffer.from(bytes).toString('hex');
    const { compact, recoveryId } = ec.ecBackend.sign(fill(7), fill(9));
    const signature = hex(schnorr.schnorrSign(fill(7), fill(9)));
    console.log(JSON.stringify({ name: ec.ecBackend.name, compact: hex(compact), recoveryId, signature }));
  });
`;

test('without native code the same bytes are signed, more slowly', async () => {
  const modules = ['secp256k1', 'schnorr'].map((name) =>
    new URL(`../../../src/crypto/${name}.ts`, import.meta.url).toString(),
  );
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', program, ...modules]);
  const [digest, secret] = [new Uint8Array(32).fill(7), new Uint8Array(32).fill(9)];
  const { compact, recoveryId } = ecBackend.sign(digest, secret);
  expect(ecBackend.name).toBe('native');
  expect(JSON.parse(stdout)).toEqual({
    name: 'noble',
    compact: bytesToHex(compact),
    recoveryId,
    signature: bytesToHex(schnorrSign(digest, secret)),
  });
});
