import type { SqlEntityManager } from '@mikro-orm/sql';
import { knownNonces } from '../../domain/money/sending/accounts-after-restore.ts';
import type { Tables } from '../../domain/tables.ts';
import type { Chains } from '../../ports/chains.ts';

/** An account that has sent more transactions than the database contains. */
interface AccountAhead {
  /** The account in CAIP-10 format. */
  readonly account: string;
  readonly wallet_id: string;
  readonly known_nonce: number;
  readonly chain_nonce: number;
}

export interface ComparedAccounts {
  readonly ahead: readonly AccountAhead[];
  /**
   * Accounts that could not be compared, because their nodes did not respond. A chain id (CAIP-2) stands for all
   * accounts of a chain that was given up.
   */
  readonly unanswered: readonly string[];
  /** The number of compared accounts. */
  readonly compared: number;
  /**
   * The number of wallets on chains without nonces that are not archived, by chain type. An operator has to accept
   * their accounts.
   */
  readonly uncomparable: Readonly<Record<string, number>>;
}

const PAGE = 500;
const AT_ONCE = 16;
/** After this many consecutive calls without a response, a chain is given up, because each call waits for a timeout. */
const MOST_UNANSWERED = 32;
/** Chain types whose wallets send transactions without nonces. */
const WITHOUT_NONCES = ['solana', 'tron', 'spark'];

/** Compares the nonces of all Ethereum wallets on these chains with those in the database. */
export async function compareAccounts(
  em: SqlEntityManager,
  {
    chains,
    caip2s,
    onProgress,
  }: { chains: Chains; caip2s: readonly string[]; onProgress(count: number): void },
): Promise<ComparedAccounts> {
  const ahead: AccountAhead[] = [];
  const unanswered: string[] = [];
  let compared = 0;
  const evm = caip2s.flatMap((caip2) => {
    const chain = chains.find(caip2);
    return chain?.kind === 'evm' ? { chain, silence: 0 } : [];
  });
  for await (const wallets of pagesOfWallets(em)) {
    const pairs = wallets.flatMap((wallet) => evm.map((asked) => ({ wallet, asked })));
    for (let at = 0; at < pairs.length; at += AT_ONCE) {
      const batch = pairs.slice(at, at + AT_ONCE).filter(({ asked }) => asked.silence < MOST_UNANSWERED);
      const nonces = await Promise.allSettled(
        batch.map(({ wallet, asked }) => asked.chain.nonce(wallet.address)),
      );
      for (const [index, nonce] of nonces.entries()) {
        const { wallet, asked } = batch[index]!;
        const { caip2 } = asked.chain;
        const account = `${caip2}:${wallet.address}`;
        compared += 1;
        asked.silence = nonce.status === 'rejected' ? asked.silence + 1 : 0;
        if (nonce.status === 'rejected') {
          unanswered.push(account);
          if (asked.silence === MOST_UNANSWERED) unanswered.push(caip2);
        } else if (nonce.value > 0n) {
          const known = await knownNonces(em, { caip2, address: wallet.address });
          const chainNonce = Number(nonce.value);
          if (chainNonce > known) {
            ahead.push({ account, wallet_id: wallet.id, known_nonce: known, chain_nonce: chainNonce });
          }
        }
      }
    }
    onProgress(compared);
  }
  return { ahead, unanswered, compared, uncomparable: await countUncomparable(em) };
}

async function* pagesOfWallets(em: SqlEntityManager) {
  for (let after = ''; ; ) {
    const page = await em
      .getKysely<Tables>()
      .selectFrom('wallets')
      .select(['id', 'address'])
      .where('chain_type', '=', 'ethereum')
      .where('id', '>', after)
      .orderBy('id')
      .limit(PAGE)
      .execute();
    if (page.length > 0) yield page;
    if (page.length < PAGE) return;
    after = page.at(-1)!.id;
  }
}

async function countUncomparable(em: SqlEntityManager): Promise<Record<string, number>> {
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('wallets')
    .select('chain_type')
    .select((select) => select.fn.countAll().as('count'))
    .where('chain_type', 'in', WITHOUT_NONCES)
    .where('archived_at_ms', 'is', null)
    .groupBy('chain_type')
    .execute();
  return Object.fromEntries(rows.map(({ chain_type: type, count }) => [type, Number(count)]));
}
