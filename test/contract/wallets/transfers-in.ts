import type { Tables } from '../../../src/domain/tables.ts';
import type { TransferActionResponse, Wallet } from '../../../src/generated/schemas.ts';
import { type CallOptions, call, refusal } from '../../support/call.ts';
import { chain, fund } from '../../support/fund.ts';
import type { TestSandbox } from '../../support/sandbox.ts';
import { waitSeconds } from '../../support/wait-seconds.ts';

const ETHER = 10n ** 18n;

/** Functions of transfer tests on a sandbox, which is started later. */
export function transfersIn(sandboxNow: () => TestSandbox) {
  return {
    /** A wallet with 1 ETH and some USDC, in its smallest units, on Base. */
    async makeWallet(rawUsdc: bigint, extra: object = {}): Promise<Wallet> {
      const sandbox = sandboxNow();
      const { body } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum', ...extra } });
      await fund(sandbox, body.address, { chain: 'base', asset: 'eth', rawAmount: ETHER });
      await fund(sandbox, body.address, { chain: 'base', asset: 'usdc', rawAmount: rawUsdc });
      return body;
    },
    async transfer(wallet: Wallet, body: object, options?: CallOptions): Promise<TransferActionResponse> {
      const path = { wallet_id: wallet.id };
      return (await call(sandboxNow(), 'transferFromWallet', { path, body: body as never }, options)).body;
    },
    async refused(
      operation: 'quoteWalletTransfer' | 'transferFromWallet',
      wallet: Wallet,
      body: object,
      options?: CallOptions,
    ) {
      const path = { wallet_id: wallet.id };
      const answer = await refusal(sandboxNow(), operation, { path, body } as never, options);
      return { status: answer.status, code: answer.body.code, error: answer.body.error };
    },
    async actionOf(
      { id, wallet_id }: TransferActionResponse,
      include?: 'steps',
    ): Promise<TransferActionResponse> {
      const path = { wallet_id, action_id: id };
      const query = include === undefined ? {} : { include };
      return (await call(sandboxNow(), 'getWalletAction', { path, query })).body as TransferActionResponse;
    },
    wait: (seconds: number) => waitSeconds(sandboxNow(), seconds),
    /** The balances of an address; null is the native asset. */
    async holds(address: string, name: string, ...tokens: (string | null)[]) {
      return sandboxNow().chains.find(chain(name).caip2)?.balances(address, tokens);
    },
    /** The payloads of the events of an action, in order. */
    async eventsOf(actionId: string): Promise<Record<string, unknown>[]> {
      const rows = await sandboxNow()
        .database.orm.em.fork()
        .getKysely<Tables>()
        .selectFrom('outbox_events')
        .select('payload')
        .where('resource_id', '=', actionId)
        .orderBy('sequence')
        .execute();
      return rows.map(({ payload }) => JSON.parse(payload));
    },
  };
}
