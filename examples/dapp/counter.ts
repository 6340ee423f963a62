import {
  createPublicClient,
  createWalletClient,
  encodeFunctionData,
  type Hex,
  http,
  parseAbi,
  webSocket,
} from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { base } from 'viem/chains';

/** The server of wallets, and the node of a chain. */
export interface Settings {
  readonly baseUrl: string;
  readonly appId: string;
  readonly appSecret: string;
  /** `--rpc-port` and the chain: http://127.0.0.1:8545/base */
  readonly rpcUrl: string;
  /** `fetch` that trusts the certificate of the server. */
  readonly fetch: typeof globalThis.fetch;
}

/**
 * A contract that counts: `increment()` adds one and emits `Incremented(by, value)`. Source:
 *
 *     contract Counter {
 *       uint256 public count;
 *       event Incremented(address indexed by, uint256 value);
 *       function increment() external { emit Incremented(msg.sender, ++count); }
 *     }
 */
export const counterAbi = parseAbi([
  'function increment()',
  'function count() view returns (uint256)',
  'event Incremented(address indexed by, uint256 value)',
]);

/** The code of the contract, by solc. */
export const counterBytecode: Hex =
  '0x6080604052348015600e575f5ffd5b5060c680601a5f395ff3fe6080604052348015600e575f5ffd5b50600436106030575f3560e01c806306661abd146034578063d09de08a14604d575b5f5ffd5b603b5f5481565b60405190815260200160405180910390f35b60536055565b005b336001600160a01b03167f38ac789ed44572701765277c4d0970f2db1c1a571ed39e84358095ae4eaa54205f5f8154608b9060a3565b918290555060405190815260200160405180910390a2565b5f6001820160bf57634e487b7160e01b5f52601160045260245ffd5b506001019056';

/** Deploys the contract. Returns the actions of the page that uses it. */
export async function openCounter(settings: Settings, deployerKey: Hex) {
  const { rpcUrl } = settings;
  const reader = createPublicClient({ chain: base, transport: http(rpcUrl), pollingInterval: 100 });
  const watcher = createPublicClient({ chain: base, transport: webSocket(rpcUrl.replace(/^http/, 'ws')) });
  const account = privateKeyToAccount(deployerKey);
  const deployer = createWalletClient({ account, chain: base, transport: http(rpcUrl) });

  const hash = await deployer.deployContract({ abi: counterAbi, bytecode: counterBytecode });
  const { contractAddress } = await reader.waitForTransactionReceipt({ hash });
  if (contractAddress == null) throw new Error('expected the transaction to create a contract');
  const contract = { address: contractAddress, abi: counterAbi } as const;

  return {
    address: contract.address,
    read: () => reader.readContract({ ...contract, functionName: 'count' }),
    /** Calls `onIncrement` for each event from now on, until the function that it returns is called. */
    async watch(onIncrement: (by: Hex, value: bigint) => void): Promise<() => void> {
      const stop = watcher.watchContractEvent({
        ...contract,
        eventName: 'Incremented',
        onLogs: (logs) => {
          for (const { args } of logs) onIncrement(args.by!, args.value!);
        },
      });
      // The node answers in order, so it has the subscription when it answers the next message.
      await watcher.getChainId();
      return stop;
    },
    /** Sends the transaction by a wallet of the server, and waits for its receipt on the chain. */
    async incrementBy(walletId: string) {
      const data = encodeFunctionData({ abi: counterAbi, functionName: 'increment' });
      const sent = await sendByWallet(settings, walletId, { to: contract.address, data });
      return reader.waitForTransactionReceipt({ hash: sent });
    },
    async close(): Promise<void> {
      const client = await watcher.transport.getRpcClient();
      client.close();
    },
  };
}

/** The server signs with the key of the wallet, under its policies, and broadcasts the transaction. */
async function sendByWallet(
  { baseUrl, appId, appSecret, fetch }: Settings,
  walletId: string,
  transaction: { readonly to: Hex; readonly data: Hex },
): Promise<Hex> {
  const response = await fetch(`${baseUrl}/v1/wallets/${walletId}/rpc`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${btoa(`${appId}:${appSecret}`)}`,
      'service-app-id': appId,
      'content-type': 'application/json',
    },
    body: JSON.stringify({
      method: 'eth_sendTransaction',
      caip2: `eip155:${base.id}`,
      params: { transaction },
    }),
  });
  const body = (await response.json()) as { readonly data?: { readonly hash: Hex }; readonly error?: string };
  if (body.data === undefined) throw new Error(`the wallet has not sent it: ${body.error}`);
  return body.data.hash;
}
