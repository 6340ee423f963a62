import { LRUCache } from 'lru-cache';
import type { JwksSource } from '../ports/requests.ts';
import type { Clock } from '../ports/runtime.ts';
import { readBoundedText } from './outside-services.ts';

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
 * Creates a reader of JSON Web Key Sets over HTTP. It caches a document for an hour. An unknown key id triggers a new
 * request, at most twice a minute. While the issuer is unavailable, the cached document stays in use, and a request is
 * tried at most twice a minute.
 */
export function createHttpJwks(clock: Clock): JwksSource {
  const documents = new LRUCache<string, CachedDocument>({ max: MAX_DOCUMENTS });
  const failedAtMs = new LRUCache<string, number>({ max: MAX_DOCUMENTS });
  const pending = new Map<string, Promise<CachedDocument>>();

  const fetchOnce = (url: string): Promise<CachedDocument> => {
    const running = pending.get(url);
    if (running !== undefined) return running;
    const started = fetchKeys(url)
      .then((keys) => {
        const document = { keys, fetchedAtMs: clock.now() };
        documents.set(url, document);
        return document;
      })
      .finally(() => pending.delete(url));
    pending.set(url, started);
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
        // Later calls use the cached document immediately instead of waiting for another timeout.
        failedAtMs.set(url, clock.now());
        return known.keys;
      }
    },
  };
}

function isFresh({ fetchedAtMs }: CachedDocument, nowMs: number, isKidUnknown: boolean): boolean {
  return isWithin(isKidUnknown ? COOLDOWN_MS : FRESH_MS, fetchedAtMs, nowMs);
}

// If the clock was set back, the age is negative and does not count as within the duration.
function isWithin(durationMs: number, sinceMs: number | undefined, nowMs: number): boolean {
  return sinceMs !== undefined && nowMs >= sinceMs && nowMs - sinceMs < durationMs;
}

async function fetchKeys(url: string): Promise<Jwk[]> {
  const response = await fetch(url, {
    headers: { accept: 'application/json' },
    // Follow no redirect, because the operator has configured only this address.
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!response.ok) throw new Error(`expected status 2xx for the JWKS document, got ${response.status}`);
  const text = await readBoundedText(response, MAX_DOCUMENT_BYTES);
  if (text === undefined) throw new Error(`expected a JWKS document of at most ${MAX_DOCUMENT_BYTES} bytes`);
  const document: unknown = JSON.parse(text);
  const keys =
    typeof document === 'object' && document !== null ? (document as { keys?: unknown }).keys : undefined;
  if (!Array.isArray(keys)) throw new Error('expected a `keys` array in the JWKS document');
  return keys.filter((key): key is Jwk => typeof key === 'object' && key !== null);
}
