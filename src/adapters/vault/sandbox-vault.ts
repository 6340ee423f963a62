import type { Clock } from '../../ports/clock.ts';
import type { Entropy } from '../../ports/entropy.ts';
import type { KeyVault } from '../../ports/key-vault.ts';
import { systemEntropy } from '../entropy.ts';
import { localMasterKey } from './master-key-local.ts';
import type { PhraseKeys } from './prepared-keys.ts';
import { createMasterKeyVault, type MasterKeyVault } from './vault-master-key.ts';
import { vaultOn } from './vault-operations.ts';

/** A vault whose master key is replaced together with all that it has sealed. */
export interface SandboxVault extends KeyVault {
  use(masterKeyHex: string): void;
  /** Wipes the keys that were prepared. */
  close(): void;
}

interface SandboxVaultOptions {
  /** Default: that of the system. */
  readonly keyEntropy?: Entropy;
  readonly clock?: Clock;
  readonly phraseKeys?: PhraseKeys;
}

/** The vault of a sandbox, with a single master key. Seals with system randomness even in a seeded sandbox. */
export function sandboxVault(
  masterKeyHex: string,
  { keyEntropy = systemEntropy, clock, phraseKeys }: SandboxVaultOptions = {},
): SandboxVault {
  let current = envelopesUnder(masterKeyHex);
  const envelopes: MasterKeyVault = {
    get currentMasterKeyId() {
      return current.currentMasterKeyId;
    },
    seal: (...sealing) => current.seal(...sealing),
    withSecret: (...opening) => current.withSecret(...opening),
    rewrap: (...rewrapping) => current.rewrap(...rewrapping),
  };
  return {
    ...vaultOn(envelopes, keyEntropy, { clock, phraseKeys }),
    isLocal: true,
    use: (replacement) => {
      current = envelopesUnder(replacement);
    },
    close: () => phraseKeys?.close(),
  };
}

function envelopesUnder(masterKeyHex: string): MasterKeyVault {
  const key = localMasterKey('local', Buffer.from(masterKeyHex, 'hex'), systemEntropy);
  return createMasterKeyVault({ masterKeys: [key], entropy: systemEntropy });
}
