// Messages of JSON-RPC that should not keep a sandbox from its other clients.

/** A message, and what a client receives for it. */
export interface Attack {
  readonly name: string;
  readonly body: string;
  /** Matches the message of the error, or of the first error of a batch. Undefined when the call succeeds. */
  readonly refused: RegExp | undefined;
}

const message = (method: string, ...params: unknown[]) => ({ jsonrpc: '2.0', id: 1, method, params });
const TARGET = `0x${'a7'.repeat(20)}`;
const word = (value: number): string => value.toString(16).padStart(64, '0');

/** All the gas of a block, which takes seconds. */
export const BLOCK_GAS = 30_000_000;

/** JUMPDEST, PUSH0, JUMP */
const LOOP = '0x5b5f56';
/** Calls itself with all gas, and again when that has returned. */
const RECURSION = '0x5b5f5f5f5f5f305af1505f56';
/** Hashes 1 MB of memory again and again. */
const HASHES = '0x5b620fffff5f20505f56';
/** Copies 1 MB of memory again and again. */
const COPIES = '0x5b620fffff5f60015e5f56';
/** Reads slots that no one has touched, one after the other. */
const READS = '0x5f5b80545060010180600157';
/** Logs 1 kB again and again. */
const LOGS = '0x5b6104005fa05f56';

/** The initcode that returns `size` bytes of code. */
const creation = (size: number): string => `0x61${size.toString(16).padStart(4, '0')}5ff3`;

const GAS = /out of gas|timeout|timed out|gas/i;

/** @param gas the limit of each execution. */
export function attacksWith(gas: number): readonly Attack[] {
  const limit = `0x${gas.toString(16)}`;
  /** A call of bytecode that no account has. */
  const execution = (code: string) =>
    message('eth_call', { to: TARGET, gas: limit }, 'latest', { [TARGET]: { code } });
  return [
    { name: 'JSON that ends early', body: '{"jsonrpc":"2.0","id":1,"method":"eth_call"', refused: /./ },
    { name: '100,000 nested lists', body: '['.repeat(100_000), refused: /./ },
    { name: '20 MB of spaces', body: ' '.repeat(20_000_000), refused: /./ },
    {
      name: 'a parameter of 1 MB',
      body: JSON.stringify(message('eth_getBalance', `0x${'0'.repeat(1_000_000)}`, 'latest')),
      refused: /./,
    },
    { name: 'an unknown method', body: JSON.stringify(message('eth_nothing')), refused: /eth_nothing/ },
    { name: 'an endless loop', body: JSON.stringify(execution(LOOP)), refused: GAS },
    { name: 'an endless recursion', body: JSON.stringify(execution(RECURSION)), refused: GAS },
    { name: 'endless hashes', body: JSON.stringify(execution(HASHES)), refused: GAS },
    { name: 'endless copies', body: JSON.stringify(execution(COPIES)), refused: GAS },
    { name: 'endless reads', body: JSON.stringify(execution(READS)), refused: GAS },
    { name: 'endless logs', body: JSON.stringify(execution(LOGS)), refused: GAS },
    {
      name: 'an estimate of an endless loop',
      body: JSON.stringify(message('eth_estimateGas', { data: LOOP, gas: limit })),
      refused: GAS,
    },
    {
      name: 'a modular exponentiation of 1 kB numbers',
      body: JSON.stringify(
        message(
          'eth_call',
          {
            ...{ to: `0x${word(5).slice(24)}`, gas: limit },
            data: `0x${word(1_024)}${word(1_024)}${word(1_024)}${'f'.repeat(6_144)}`,
          },
          'latest',
        ),
      ),
      refused: GAS,
    },
    {
      name: 'a creation of 24 kB',
      body: JSON.stringify(message('eth_call', { data: creation(24_576), gas: '0xffffff' }, 'latest')),
      refused: undefined,
    },
    {
      name: 'a creation of more than 24 kB',
      body: JSON.stringify(message('eth_call', { data: creation(24_577), gas: '0xffffff' }, 'latest')),
      refused: /max code size|code size/i,
    },
    {
      name: 'the logs of all blocks',
      body: JSON.stringify(message('eth_getLogs', { fromBlock: '0x0', toBlock: 'latest' })),
      refused: undefined,
    },
    {
      name: 'a batch of 1,000 endless loops',
      body: JSON.stringify(Array.from({ length: 1_000 }, () => execution(LOOP))),
      refused: GAS,
    },
    {
      name: 'a batch of 1,001',
      body: JSON.stringify(Array.from({ length: 1_001 }, () => message('eth_chainId'))),
      refused: /batch too large/,
    },
  ];
}

/** The message of the first error of a response. */
export function errorIn(response: unknown): string | undefined {
  const answers = (Array.isArray(response) ? response : [response]) as {
    error?: string | { message: string };
  }[];
  const error = answers.find((answer) => answer?.error !== undefined)?.error;
  return typeof error === 'object' ? error.message : error;
}
