import { readFileSync } from 'node:fs';
import { type Abi, encodeDeployData, encodeFunctionData, type Hex, toHex } from 'viem';
import type { Anvil } from '../anvil.ts';

type ContractName = 'Token' | 'Vault' | 'FeeVault' | 'Distributor';

// Compiled from test/vectors/contracts/vault.sol.
const contracts = JSON.parse(
  readFileSync(new URL('../../vectors/contracts/golden/vault.json', import.meta.url), 'utf8'),
) as Record<ContractName, { abi: Abi; bytecode: Hex }>;

/** OpenZeppelin's vault, tokens and a distributor of rewards, on a node. */
export interface EarnContracts {
  deploy(name: ContractName, ...args: unknown[]): Promise<Hex>;
  /** Installs a token that anybody can mint at an address. */
  installToken(at: Hex, decimals: number): Promise<void>;
  /** Executes a function. It must succeed. */
  call(to: Hex, name: ContractName, functionName: string, ...args: unknown[]): Promise<void>;
  read(to: Hex, name: ContractName, functionName: string, ...args: unknown[]): Promise<bigint>;
}

export function earnContractsOn(anvil: Anvil): EarnContracts {
  const encode = (name: ContractName, functionName: string, args: unknown[]) =>
    encodeFunctionData({ abi: contracts[name].abi, functionName, args } as never);

  async function send(transaction: object): Promise<{ contractAddress: Hex }> {
    const [from] = (await anvil.ask('eth_accounts')) as Hex[];
    const hash = await anvil.ask('eth_sendTransaction', { from, gas: toHex(5_000_000n), ...transaction });
    await anvil.ask('evm_mine');
    const receipt = await anvil.ask('eth_getTransactionReceipt', hash);
    const { status, contractAddress } = receipt as { status: string; contractAddress: Hex };
    if (status !== '0x1')
      throw new Error(`expected a success of ${JSON.stringify(transaction).slice(0, 80)}`);
    return { contractAddress };
  }

  const deploy: EarnContracts['deploy'] = async (name, ...args) => {
    const { contractAddress } = await send({ data: encodeDeployData({ ...contracts[name], args } as never) });
    return contractAddress;
  };

  return {
    deploy,
    async installToken(at, decimals) {
      const code = await anvil.ask('eth_getCode', await deploy('Token', decimals), 'latest');
      await anvil.ask('anvil_setCode', at, code);
    },
    call: async (to, name, functionName, ...args) =>
      void (await send({ to, data: encode(name, functionName, args) })),
    read: async (to, name, functionName, ...args) =>
      BigInt(
        (await anvil.ask('eth_call', { to, data: encode(name, functionName, args) }, 'latest')) as string,
      ),
  };
}
