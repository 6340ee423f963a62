import { hpkeRecipientFromSeed, openHpke } from '../engine/crypto/hpke.ts';
import { isChainType } from '../engine/signing/chains.ts';
import type { KeyStore, SealBinding, SealedKey, SubmittedKey } from '../ports/key-store.ts';
import type { Entropy } from '../ports/runtime.ts';
import { KeyStoreError, type MasterKeyEnvelopes, MasterKeyUnavailableError } from './master-keys.ts';

const EPHEMERAL_SEED_BYTES = 32;
const PRIVATE_KEY_BYTES = 32;

/** The chain type follows. */
const IMPORT_PURPOSE = 'wallet-import-';

/** Generates the keys to which imported secrets are encrypted, and opens those secrets. */
export function importOperations(envelopes: MasterKeyEnvelopes, entropy: Entropy) {
  /** Imports that an earlier version started still have the purpose of a wallet's key, until they expire. */
  async function underEither<T>(
    binding: SealBinding,
    work: (binding: SealBinding) => Promise<T>,
  ): Promise<T> {
    try {
      return await work(importBinding(binding));
    } catch (error) {
      if (!(error instanceof KeyStoreError) || error instanceof MasterKeyUnavailableError) throw error;
      return work({ ...importBinding(binding), purpose: chainTypeOf(binding) });
    }
  }

  return {
    createKey: (async (binding) => {
      const seed = entropy.bytes(EPHEMERAL_SEED_BYTES);
      const pair = await hpkeRecipientFromSeed(seed).finally(() => seed.fill(0));
      const sealed = await envelopes
        .seal(pair.privateKeyBytes, importBinding(binding))
        .finally(() => pair.privateKeyBytes.fill(0));
      return { sealed, publicKey: pair.publicKeyBytes };
    }) satisfies KeyStore['createImportKey'],

    /** The content of a submission. The caller wipes it. */
    open(
      importKey: SealedKey,
      binding: SealBinding,
      { parameters, encapsulatedKey, ciphertext }: SubmittedKey,
    ): Promise<Uint8Array> {
      return underEither(binding, (each) =>
        envelopes.withSecret(importKey, each, (recipientPrivateKeyBytes) => {
          // INVARIANT: the key of a wallet is never used for decryption.
          if (recipientPrivateKeyBytes.length !== PRIVATE_KEY_BYTES) {
            throw new KeyStoreError('expected the key of an import');
          }
          return openHpke({ recipientPrivateKeyBytes, encapsulatedKey, ciphertext }, parameters);
        }),
      );
    },

    rewrap: ((sealed, binding) =>
      binding.purpose.startsWith(IMPORT_PURPOSE)
        ? underEither(binding, (each) => envelopes.rewrap(sealed, each))
        : envelopes.rewrap(sealed, binding)) satisfies KeyStore['rewrap'],
  };
}

/**
 * INVARIANT: the key of an import has its own purpose, so it can neither sign nor be exported as the key of a wallet.
 */
function importBinding(binding: SealBinding): SealBinding {
  const { rowId, appId } = binding;
  return { purpose: `${IMPORT_PURPOSE}${chainTypeOf(binding)}`, rowId, appId };
}

/** Servers of an earlier version send only the chain type. */
function chainTypeOf({ purpose }: SealBinding): string {
  const chainType = purpose.startsWith(IMPORT_PURPOSE) ? purpose.slice(IMPORT_PURPOSE.length) : purpose;
  if (isChainType(chainType)) return chainType;
  throw new KeyStoreError('expected the purpose of an import');
}
