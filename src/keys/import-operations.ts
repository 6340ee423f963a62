import { hpkeRecipientFromSeed, openHpke } from '../engine/crypto/hpke.ts';
import { isChainType } from '../engine/signing/chains.ts';
import type { KeyVault, SealBinding, SealedKey, SubmittedKey } from '../ports/key-vault.ts';
import type { Entropy } from '../ports/runtime.ts';
import { MasterKeyUnavailableError, type MasterKeyVault, VaultError } from './master-keys.ts';

const EPHEMERAL_SEED_BYTES = 32;
const PRIVATE_KEY_BYTES = 32;

/** Followed by the chain type. */
const IMPORT_PURPOSE = 'wallet-import-';

/** How a vault draws the keys that imports are encrypted to, and opens what was encrypted to them. */
export function importOperations(envelopes: MasterKeyVault, entropy: Entropy) {
  /** Imports that an earlier version began have the purpose of a wallet's key, for as long as they last. */
  async function underEither<T>(
    binding: SealBinding,
    work: (binding: SealBinding) => Promise<T>,
  ): Promise<T> {
    try {
      return await work(importBinding(binding));
    } catch (error) {
      if (!(error instanceof VaultError) || error instanceof MasterKeyUnavailableError) throw error;
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
    }) satisfies KeyVault['createImportKey'],

    /** The content of a submission. The caller wipes it. */
    open(
      importKey: SealedKey,
      binding: SealBinding,
      { parameters, encapsulatedKey, ciphertext }: SubmittedKey,
    ): Promise<Uint8Array> {
      return underEither(binding, (each) =>
        envelopes.withSecret(importKey, each, (recipientPrivateKeyBytes) => {
          // INVARIANT: a wallet's key decrypts nothing.
          if (recipientPrivateKeyBytes.length !== PRIVATE_KEY_BYTES) {
            throw new VaultError('expected the key of an import');
          }
          return openHpke({ recipientPrivateKeyBytes, encapsulatedKey, ciphertext }, parameters);
        }),
      );
    },

    rewrap: ((sealed, binding) =>
      binding.purpose.startsWith(IMPORT_PURPOSE)
        ? underEither(binding, (each) => envelopes.rewrap(sealed, each))
        : envelopes.rewrap(sealed, binding)) satisfies KeyVault['rewrap'],
  };
}

/** INVARIANT: a purpose of its own, so that the key of an import is neither used nor exported as a wallet's. */
function importBinding(binding: SealBinding): SealBinding {
  const { rowId, appId } = binding;
  return { purpose: `${IMPORT_PURPOSE}${chainTypeOf(binding)}`, rowId, appId };
}

/** Servers of an earlier version name the chain type only. */
function chainTypeOf({ purpose }: SealBinding): string {
  const chainType = purpose.startsWith(IMPORT_PURPOSE) ? purpose.slice(IMPORT_PURPOSE.length) : purpose;
  if (isChainType(chainType)) return chainType;
  throw new VaultError('expected the purpose of an import');
}
