import { createRequire } from 'node:module';
import { schnorr as noble } from '@noble/curves/secp256k1.js';

// CHOICE: zero auxiliary randomness, which BIP-340 allows: the pure rooms draw no randomness, and the
// same request signs to the same bytes.
const AUXILIARY = new Uint8Array(32);

interface WasmBindings {
  signSchnorr(digest: Uint8Array, secret: Uint8Array, auxiliary: Uint8Array): Uint8Array;
}

let wasm: WasmBindings | undefined | 'unloaded' = 'unloaded';

/** BIP-340 signature, 64 bytes, over a 32-byte digest; on WebAssembly where it loads, else on noble. */
export function schnorrSign(digest: Uint8Array, secret: Uint8Array): Uint8Array {
  const bindings = loadWasm();
  return bindings === undefined
    ? schnorrSignPortable(digest, secret)
    : bindings.signSchnorr(digest, secret, AUXILIARY);
}

/** The same signature on noble alone. */
export function schnorrSignPortable(digest: Uint8Array, secret: Uint8Array): Uint8Array {
  return noble.sign(digest, secret, AUXILIARY);
}

/** sha256(sha256(tag) || sha256(tag) || message), BIP-340. */
export function taggedHash(tag: string, message: Uint8Array): Uint8Array {
  return noble.utils.taggedHash(tag, message);
}

// Loaded at the first taproot signature: the module costs 1.4 MB that most processes never need.
function loadWasm(): WasmBindings | undefined {
  if (wasm === 'unloaded') {
    try {
      wasm = createRequire(import.meta.url)('tiny-secp256k1') as WasmBindings;
    } catch {
      wasm = undefined;
    }
  }
  return wasm;
}
