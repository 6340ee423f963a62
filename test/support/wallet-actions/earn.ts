import type { OperationId } from '../../../src/generated/operations.ts';
import type { WalletActionResponse } from '../../../src/generated/schemas.ts';
import { type CallOptions, call, refusal } from '../call.ts';
import type { TestSandbox } from '../sandbox.ts';

/** A vault in the control plane's representation. */
export interface SetUpVault {
  readonly id: string;
  readonly address: string;
}

/** Functions for earn tests on a sandbox that is started later. */
export function earnIn(sandboxNow: () => TestSandbox) {
  const control = async (method: 'GET' | 'POST' | 'PUT', path: string, body?: object) => {
    const sandbox = sandboxNow();
    const answer = await sandbox.dispatcher.request({
      origin: sandbox.baseUrl,
      path: `/_sandbox/${path}`,
      method,
      headers: body === undefined ? {} : { 'content-type': 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
    });
    return { status: answer.statusCode, body: (await answer.body.json()) as Record<string, unknown> };
  };
  const start = async (operation: OperationId, walletId: string, body: object, options?: CallOptions) =>
    (
      await call(
        sandboxNow(),
        operation as 'depositEthereumEarn',
        { path: { wallet_id: walletId }, body: body as never },
        options,
      )
    ).body as WalletActionResponse & Record<string, unknown>;
  return {
    control,
    start,
    async setUpVault(body: object): Promise<SetUpVault> {
      const given = { chain: 'base', asset: 'usdc', ...body };
      const answer = await control('POST', `apps/${sandboxNow().appId}/earn_vaults`, given);
      if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
      return answer.body as unknown as SetUpVault;
    },
    changeVault: (vault: SetUpVault, body: object) => control('PUT', `earn_vaults/${vault.id}`, body),
    async refused(operation: OperationId, walletId: string, body: object, options?: CallOptions) {
      const path = { wallet_id: walletId };
      const answer = await refusal(sandboxNow(), operation, { path, body }, options);
      return { status: answer.status, code: answer.body.code, error: answer.body.error };
    },
    async positionOf(walletId: string, vault: SetUpVault) {
      const input = { path: { wallet_id: walletId }, query: { vault_id: vault.id } };
      return (await call(sandboxNow(), 'getEthereumEarnPosition', input)).body;
    },
    async vaultOf({ id }: SetUpVault) {
      const { body } = await call(sandboxNow(), 'getEthereumEarnVault', { path: { vault_id: id } });
      return body as unknown as Record<string, unknown>;
    },
  };
}
