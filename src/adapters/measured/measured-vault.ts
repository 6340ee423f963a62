import type { KeyVault } from '../../ports/key-vault.ts';

/** Called for every use of a vault. */
type ObserveVault = (call: 'seal' | 'open', durationMs: number, hasFailed: boolean) => void;

/** A vault whose uses are measured: an opened key until it is open, without what is done with it. */
export function measuredVault<Vault extends KeyVault>(
  vault: Vault,
  observe: ObserveVault | undefined,
): Vault {
  if (observe === undefined) return vault;
  return {
    ...vault,
    async seal(secret, binding) {
      const startedMs = performance.now();
      let hasFailed = true;
      try {
        const sealed = await vault.seal(secret, binding);
        hasFailed = false;
        return sealed;
      } finally {
        observe('seal', performance.now() - startedMs, hasFailed);
      }
    },
    async withSecret(sealed, binding, use) {
      const startedMs = performance.now();
      let isOpen = false;
      try {
        return await vault.withSecret(sealed, binding, (secret) => {
          isOpen = true;
          observe('open', performance.now() - startedMs, false);
          return use(secret);
        });
      } finally {
        if (!isOpen) observe('open', performance.now() - startedMs, true);
      }
    },
  };
}
