/** What a colour says: it went well, it needs a look, it failed, it is under way, or nothing. */
export type Tone = 'good' | 'warn' | 'bad' | 'info' | 'none';

/** The names and colours of the chains that people know. */
const chains: Readonly<Record<string, readonly [name: string, color: string]>> = {
  'eip155:1': ['Ethereum', '#5b6ee1'],
  'eip155:10': ['Optimism', '#e0263c'],
  'eip155:56': ['BNB Chain', '#a97a06'],
  'eip155:130': ['Unichain', '#d0147c'],
  'eip155:137': ['Polygon', '#7b3fe4'],
  'eip155:8453': ['Base', '#1453e6'],
  'eip155:42161': ['Arbitrum', '#1b6fb5'],
  'eip155:43114': ['Avalanche', '#c93536'],
  'eip155:80002': ['Polygon Amoy', '#7b3fe4'],
  'eip155:84532': ['Base Sepolia', '#1453e6'],
  'eip155:421614': ['Arbitrum Sepolia', '#1b6fb5'],
  'eip155:11155111': ['Sepolia', '#5b6ee1'],
  'eip155:11155420': ['Optimism Sepolia', '#e0263c'],
  'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp': ['Solana', '#7d37e0'],
  'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1': ['Solana devnet', '#7d37e0'],
  'solana:4uhcVJyU9pJkvQyS88uRDiswHXSCkY3z': ['Solana testnet', '#7d37e0'],
  'tron:0x2b6653dc': ['Tron', '#c8102e'],
};

/** The colours of chain types, which also mark chains that are not in the table. */
const families: Readonly<Record<string, string>> = {
  ethereum: '#5b6ee1',
  eip155: '#56637a',
  solana: '#7d37e0',
  tron: '#c8102e',
  bitcoin: '#b8650a',
  'bitcoin-segwit': '#b8650a',
  'bitcoin-taproot': '#b8650a',
  cosmos: '#4a4e7c',
  stellar: '#3d5a80',
  sui: '#2a76c9',
  aptos: '#1f7a6d',
  movement: '#8a6d00',
  ton: '#0a7ab8',
  starknet: '#6a3fa0',
  near: '#2d7d46',
  spark: '#a14a00',
};

/**
 * Returns the name and the colour of a chain, from its CAIP-2 id, its name in the API or its type, such as
 * `eip155:8453`, `base` or `bitcoin-segwit`.
 */
export function chainOf(id: string): { readonly name: string; readonly color: string } {
  const known = chains[id];
  if (known !== undefined) return { name: known[0], color: known[1] };
  const words = id.replaceAll(/[_-]/g, ' ');
  const name = id.includes(':') ? id : words[0]!.toUpperCase() + words.slice(1);
  const same = Object.values(chains).find(([each]) => each.toLowerCase() === words.toLowerCase());
  if (same !== undefined) return { name: same[0], color: same[1] };
  return { name, color: families[id] ?? families[id.split(':')[0]!] ?? '#56637a' };
}

/** Shortens an id, a hash, a key or an address to its first and last characters. */
export function shortened(text: string): string {
  return text.length <= 14 ? text : `${text.slice(0, 6)}…${text.slice(-4)}`;
}

/** Formats US dollars, such as `$1,234.50`. */
export function usdText(amount: string): string {
  const [whole = '0', part = ''] = amount.split('.');
  return `$${BigInt(whole).toLocaleString('en')}.${part.padEnd(2, '0').slice(0, 2)}`;
}

/** Turns a name of the API into words: `earn_deposit` becomes `Earn deposit`. */
export function inWords(name: string): string {
  const words = name.replaceAll(/[_.]/g, ' ');
  return words === '' ? '' : words[0]!.toUpperCase() + words.slice(1);
}

const tones: Readonly<Record<string, Tone>> = {
  ...tonesOf(
    'good',
    'confirmed finalized succeeded success completed executed delivered enabled active approved verified allowed allow',
  ),
  ...tonesOf(
    'bad',
    'failed execution_reverted reverted provider_error rejected denied deny blocked canceled',
  ),
  ...tonesOf('bad', 'abandoned frozen disabled dropped returned'),
  ...tonesOf('warn', 'pending_authorization expired replaced retrying paused attention partially_completed'),
  ...tonesOf('warn', 'archived under_review incomplete'),
  ...tonesOf(
    'info',
    'pending broadcasted processing queued submitted in_progress open still_pending running',
  ),
};

function tonesOf(tone: Tone, words: string): Record<string, Tone> {
  return Object.fromEntries(words.split(' ').map((word) => [word, tone]));
}

/** The tone in which a status is shown. */
export function toneOf(status: string): Tone {
  return tones[status.toLowerCase()] ?? 'none';
}

/** The tone in which the status of a response is shown. Status 0 means that there was no response. */
export function toneOfHttp(status: number): Tone {
  if (status === 0 || status >= 500) return 'bad';
  if (status >= 400) return 'warn';
  return 'good';
}
