import { signal } from '@preact/signals';
import { control } from './control.ts';
import { shortened } from './names.ts';

const MAX_WALLETS = 1000;

/** The names of wallets, by their ids and by their external ids, which begin with `ext_wal_`. */
const names = signal<ReadonlyMap<string, string>>(new Map());
let isReading = false;

/** Reads the names of the newest thousand wallets. If the sandbox does not respond, known names are kept. */
export async function readWalletNames(): Promise<void> {
  if (isReading) return;
  isReading = true;
  try {
    const { data } = await control('listSandboxWallets', { query: { limit: MAX_WALLETS } });
    names.value = new Map(
      data.flatMap(({ id, name, external_id: external }): [string, string][] => {
        const shown = name ?? external;
        if (shown === null) return [];
        return [
          [id, shown],
          ...(external === null ? [] : [[`ext_wal_${external}`, shown] as [string, string]]),
        ];
      }),
    );
  } catch {
    // Without names, pages show ids.
  } finally {
    isReading = false;
  }
}

/** Returns the name of a wallet, or its shortened id. */
export function walletName(id: string): string {
  return names.value.get(id) ?? shortened(id);
}
