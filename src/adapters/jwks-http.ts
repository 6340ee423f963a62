import { LRUCache } from 'lru-cache';
import type { Clock } from '../ports/clock.ts';
import type { JwksSource } from '../ports/jwks.ts';

const FRESH_MS = 60 * 60_000;
const COOLDOWN_MS = 30_000;
const TIMEOUT_MS = 3_000;
const MAX_DOCUMENT_BYTES = 262_144;
const MAX_DOCUMENTS = 1_000;

type Jwk = Record<string, unknown>;

interface CachedDocument {
  readonly keys: readonly Jwk[];
  readonly fetchedAtMs: number;
}

/**
 * Key sets over HTTP. A document is kept for an hour; an unknown key id has it fetched anew, at most twice a minute.
 * While the issuer cannot be reached, the document known from before goes on to be used, and it is asked twice a minute.
 */
export function createHttpJwks(clock: Clock): JwksSource {
  const documents = new LRUCache<string, CachedDocument>({ max: MAX_DOCUMENTS });
  const failedAtMs = new LRUCache<string, number>({ max: MAX_DOCUMENTS });
  const underWay = new Map<string, Promise<CachedDocument>>();

  const fetchOnce = (url: string): Promise<CachedDocument> => {
    const running = underWay.get(url);
    if (running !== undefined) return running;
    const started = fetchKeys(url)
      .then((keys) => {
        const document = { keys, fetchedAtMs: clock.now() };
        documents.set(url, document);
        return document;
      })
      .finally(() => underWay.delete(url));
    underWay.set(url, started);
    return started;
  };

  return {
    async keys(url, isKidUnknown = false) {
      const known = documents.get(url);
      if (known !== undefined) {
        const isFailing = isWithin(COOLDOWN_MS, failedAtMs.get(url), clock.now());
        if (isFailing || isFresh(known, clock.now(), isKidUnknown)) return known.keys;
      }
      try {
        return (await fetchOnce(url)).keys;
      } catch (error) {
        if (known === undefined) throw error;
        // Whoever comes next does not wait for the same silence again.
        failedAtMs.set(url, clock.now());
        return known.keys;
      }
    },
  };
}

function isFresh({ fetchedAtMs }: CachedDocument, nowMs: number, isKidUnknown: boolean): boolean {
  return isWithin(isKidUnknown ? COOLDOWN_MS : FRESH_MS, fetchedAtMs, nowMs);
}

// A clock that was set back makes an age negative: that is not within.
function isWithin(durationMs: number, sinceMs: number | undefined, nowMs: number): boolean {
  return sinceMs !== undefined && nowMs >= sinceMs && nowMs - sinceMs < durationMs;
}

async function fetchKeys(url: string): Promise<Jwk[]> {
  const response = await fetch(url, {
    headers: { accept: 'application/json' },
    // The address was configured by an operator; where it points to elsewhere was not.
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!response.ok) throw new Error(`the JWKS document was answered with status ${response.status}`);
  const document: unknown = JSON.parse(await readText(response));
  const keys =
    typeof document === 'object' && document !== null ? (document as { keys?: unknown }).keys : undefined;
  if (!Array.isArray(keys)) throw new Error('the JWKS document has no `keys` array');
  return keys.filter((key): key is Jwk => typeof key === 'object' && key !== null);
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_DOCUMENT_BYTES) throw new Error('the JWKS document is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
