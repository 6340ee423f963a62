import { hpkeRecipientFromSeed, openHpke } from '../engine/crypto/hpke.ts';
import { isChainType } from '../engine/signing/chains.ts';
import type { KeyStore, SealBinding, SealedKey, SubmittedKey } from '../ports/key-store.ts';
import type { Entropy } from '../ports/runtime.ts';
import { KeyStoreError, type MasterKeyEnvelopes, MasterKeyUnavailableError } from './master-keys.ts';

const EPHEMERAL_SEED_BYTES = 32;
const PRIVATE_KEY_BYTES = 32;

/** The prefix of the purpose; the chain type follows. */
const IMPORT_PURPOSE = 'wallet-import-';

/**
 * Returns the operations that generate the keys to which imported secrets are encrypted, and that open those secrets.
 */
export function importOperations(envelopes: MasterKeyEnvelopes, entropy: Entropy) {
  /**
   * Runs `work` with the binding of the import and, if the key does not open, with the binding that an earlier version
   * used. That version sealed the keys of imports for the purpose of a wallet's key. Such imports remain until they
   * expire.
   */
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

    /** Decrypts a submitted key. The caller wipes the result. */
    open(
      importKey: SealedKey,
      binding: SealBinding,
      { parameters, encapsulatedKey, ciphertext }: SubmittedKey,
    ): Promise<Uint8Array> {
      return underEither(binding, (each) =>
        envelopes.withSecret(importKey, each, (recipientPrivateKeyBytes) => {
          // INVARIANT: the private key of a wallet is never used to decrypt.
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
 * Returns the binding of the key to which an imported secret is encrypted.
 *
 * INVARIANT: the key has its own purpose, so it cannot sign, and cannot be exported like the key of a wallet.
 */
function importBinding(binding: SealBinding): SealBinding {
  const { rowId, appId } = binding;
  return { purpose: `${IMPORT_PURPOSE}${chainTypeOf(binding)}`, rowId, appId };
}

/** Returns the chain type in the purpose of an import. Servers of earlier versions send only the chain type. */
function chainTypeOf({ purpose }: SealBinding): string {
  const chainType = purpose.startsWith(IMPORT_PURPOSE) ? purpose.slice(IMPORT_PURPOSE.length) : purpose;
  if (isChainType(chainType)) return chainType;
  throw new KeyStoreError('expected the purpose of an import');
}
