import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { control } from '../control.ts';
import { Named } from '../parts/copy.tsx';
import { hrefOf } from '../routes.ts';

/** The wallets at addresses that were looked up, which have names and pages. */
const wallets = signal<ReadonlyMap<string, { readonly id: string; readonly name: string | null }>>(new Map());
const asked = new Set<string>();
/**
 * An address that belongs to no wallet is looked up again only after this time, because a list redraws its rows
 * whenever it is scrolled.
 */
const ASK_AGAIN_MS = 10_000;

async function lookUp(address: string): Promise<void> {
  if (asked.has(address)) return;
  asked.add(address);
  try {
    const { data } = await control('listSandboxWallets', { query: { search: address, limit: 1 } });
    const [wallet] = data;
    if (wallet?.address.toLowerCase() === address.toLowerCase()) {
      wallets.value = new Map(wallets.value).set(address, wallet);
    } else setTimeout(() => asked.delete(address), ASK_AGAIN_MS);
  } catch {
    // The address is shown without a name.
    asked.delete(address);
  }
}

/**
 * An address that can be copied. If it belongs to a wallet of the sandbox, shows the wallet's name as a link to the
 * wallet.
 */
export function Address({ of, what }: { readonly of: string; readonly what: string }) {
  useEffect(() => void lookUp(of), [of]);
  const wallet = wallets.value.get(of);
  if (wallet === undefined) return <Named id={of} what={what} />;
  return (
    <Named id={of} what={what} href={hrefOf('wallets', [wallet.id])}>
      {wallet.name ?? undefined}
    </Named>
  );
}
