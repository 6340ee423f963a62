import { acceptAccounts, findRestore, releaseRestore } from '../../domain/base/restores/restores.ts';
import { inUnitOf, type OpenUnit } from '../../http/unit-of-work.ts';
import type { RestoreWatch } from '../../jobs/watch-restores.ts';
import type { Services } from '../../operation-context.ts';

const EVERY_MS = 1_000;
const HELD = 'the sandbox was restored from a backup: changes are held until `custos restored release`';

/**
 * Holds the changes of a sandbox that was restored. Its simulated chains are in its folder and were restored with it, so
 * that nothing can happen twice; only chains of nodes know more than the folder.
 *
 * @returns undefined if nothing is held.
 */
export async function restoredSandbox(
  { clock }: Pick<Services, 'clock'>,
  units: OpenUnit,
  hasNodes: boolean,
): Promise<RestoreWatch | undefined> {
  const inUnit = inUnitOf(units);
  const isOpen = async (): Promise<boolean> => (await inUnit(findRestore))?.releasedAtMs === null;
  if (!(await isOpen())) return undefined;
  if (!hasNodes) {
    await inUnit(async (em) => {
      const nowMs = clock.now();
      await releaseRestore(em, nowMs);
      await acceptAccounts(em, 'all', { nowMs, by: 'chain' });
    });
    return undefined;
  }
  let isHeld = true;
  const reason = (): string | undefined => (isHeld ? HELD : undefined);
  return {
    name: 'watch-restores',
    everyMs: EVERY_MS,
    async run() {
      if (isHeld) isHeld = await isOpen();
      return false;
    },
    open: async () => undefined,
    hold: { reason, settled: async () => reason() },
    acknowledge: () => undefined,
    doubt: () => undefined,
  };
}
