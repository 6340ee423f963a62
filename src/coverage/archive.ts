import { UnmeasurableError } from '../start-error.ts';

/** An entry of an HTTP Archive as far as coverage reads it. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly requestHeaders: ReadonlyMap<string, string>;
  readonly requestBody: unknown;
  readonly status: number;
  readonly responseBody: unknown;
  /** Only archives of a sandbox have the following. */
  readonly authorizedBy: readonly string[];
  readonly allowedBy: readonly string[];
  readonly events: readonly { readonly type: string }[];
  readonly policyOutcome: string | undefined;
}

interface Entry {
  readonly request?: Message & {
    readonly method?: string;
    readonly url?: string;
    readonly postData?: Content;
  };
  readonly response?: Message & { readonly status?: number; readonly content?: Content };
  readonly _authorizedBy?: readonly string[];
  readonly _allowedBy?: readonly string[];
  readonly _events?: readonly { readonly type: string }[];
  readonly _why?: { readonly evidence?: { readonly outcome?: unknown } };
}

interface Message {
  readonly headers?: readonly { readonly name: string; readonly value: string }[];
}

interface Content {
  readonly text?: string;
  readonly encoding?: string;
}

/**
 * Reads HTTP Archive 1.2 (http://www.softwareishard.com/blog/har-12-spec/). Entries without a response are left out.
 *
 * `source`: names the archive in errors.
 *
 * @throws UnmeasurableError if it is something else.
 */
export function readArchive(text: string, source: string): Exchange[] {
  let entries: unknown;
  try {
    entries = JSON.parse(text)?.log?.entries;
  } catch (cause) {
    throw new UnmeasurableError(`${source}: expected an HTTP Archive (HAR), got text that is not JSON`, {
      cause,
    });
  }
  if (!Array.isArray(entries))
    throw new UnmeasurableError(`${source}: expected an HTTP Archive with \`log.entries\``);
  return entries.flatMap(exchangeOf);
}

/** The exchange of an entry of an archive; none for an entry without a response. */
export function exchangeOf(value: unknown): Exchange[] {
  const entry = (value ?? {}) as Entry;
  const { request, response } = entry;
  const { method, url = '' } = request ?? {};
  const { status } = response ?? {};
  // 0: a browser's request that was aborted.
  if (method === undefined || !status || !URL.canParse(url)) return [];
  const outcome = entry._why?.evidence?.outcome;
  return [
    {
      method: method.toUpperCase(),
      path: new URL(url).pathname,
      requestHeaders: new Map((request?.headers ?? []).map(({ name, value }) => [name.toLowerCase(), value])),
      requestBody: parsed(request?.postData),
      status,
      responseBody: parsed(response?.content),
      authorizedBy: entry._authorizedBy ?? [],
      allowedBy: entry._allowedBy ?? [],
      events: entry._events ?? [],
      policyOutcome: typeof outcome === 'string' ? outcome : undefined,
    },
  ];
}

/** Undefined for a body that is not JSON. */
function parsed({ text, encoding }: Content = {}): unknown {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(encoding === 'base64' ? Buffer.from(text, 'base64').toString('utf8') : text);
  } catch {
    return undefined;
  }
}
