/** The package's JavaScript wrapper around its native binary. The package has no types for it. */
declare module 'secp256k1/lib/index.js' {
  interface Bindings {
    privateKeyVerify(secret: Uint8Array): boolean;
    privateKeyTweakAdd(secret: Uint8Array, tweak: Uint8Array): Uint8Array;
    privateKeyTweakMul(secret: Uint8Array, factor: Uint8Array): Uint8Array;
    privateKeyNegate(secret: Uint8Array): Uint8Array;
    publicKeyCreate(secret: Uint8Array, compressed: boolean): Uint8Array;
    publicKeyTweakMul(publicKey: Uint8Array, factor: Uint8Array, compressed: boolean): Uint8Array;
    publicKeyCombine(publicKeys: readonly Uint8Array[], compressed: boolean): Uint8Array;
    ecdsaSign(digest: Uint8Array, secret: Uint8Array): { signature: Uint8Array; recid: number };
    ecdsaVerify(compact: Uint8Array, digest: Uint8Array, publicKey: Uint8Array): boolean;
    ecdsaRecover(
      compact: Uint8Array,
      recoveryId: number,
      digest: Uint8Array,
      compressed: boolean,
    ): Uint8Array;
  }
  function bindingsOf(addon: object): Bindings;
  export = bindingsOf;
}
