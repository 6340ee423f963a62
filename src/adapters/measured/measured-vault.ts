import { HpkeError } from '../../crypto/hpke.ts';
import type { KeyVault } from '../../ports/key-vault.ts';
import { SigningInputError } from '../../signing/signing-errors.ts';
import { inSpan } from '../../spans.ts';

/** Called for every use of a vault, with the name of the method. */
type ObserveVault = (call: string, durationMs: number, hasFailed: boolean) => void;

/** A vault whose uses are measured, until their result. */
export function measuredVault(vault: KeyVault, observe: ObserveVault | undefined): KeyVault {
  if (observe === undefined) return vault;
  const measured =
    (name: string, method: (...args: never[]) => Promise<unknown>) =>
    async (...args: never[]): Promise<unknown> => {
      const startedMs = performance.now();
      let hasFailed = false;
      try {
        return await inSpan({ name: `key vault ${name}`, kind: 'internal' }, () => method(...args));
      } catch (error) {
        // Refusing what a caller submitted is no failure of the vault.
        hasFailed = !(error instanceof SigningInputError || error instanceof HpkeError);
        throw error;
      } finally {
        observe(name, performance.now() - startedMs, hasFailed);
      }
    };
  const members = Object.entries(Object.getOwnPropertyDescriptors(vault)).map(([name, member]) => [
    name,
    // What is no method may change, so it is read where it is.
    typeof member.value === 'function' ? { ...member, value: measured(name, member.value) } : member,
  ]);
  return Object.defineProperties({}, Object.fromEntries(members)) as KeyVault;
}
