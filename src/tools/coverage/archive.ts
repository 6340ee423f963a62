import { UnmeasurableError } from '../../config/start-error.ts';

/** The fields of an HTTP Archive entry that coverage reads. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly requestHeaders: ReadonlyMap<string, string>;
  readonly requestBody: unknown;
  readonly status: number;
  readonly responseBody: unknown;
  /** Only a sandbox writes the following fields. */
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
  readonly mimeType?: string;
  readonly text?: string;
  readonly encoding?: string;
  /** The file next to the archive in which Playwright stores the body (`content: 'attach'`). */
  readonly _file?: string;
}

/** Reads a file next to an archive. Returns undefined if the file cannot be read. */
export type ReadAttachment = (name: string) => string | undefined;

/**
 * Reads HTTP Archive 1.2 (http://www.softwareishard.com/blog/har-12-spec/). Entries without a response are omitted.
 *
 * @param source the name of the archive in errors.
 * @throws UnmeasurableError if the text is not an HTTP Archive.
 */
export function readArchive(
  text: string,
  source: string,
  attachment: ReadAttachment = () => undefined,
): Exchange[] {
  let entries: unknown;
  if (text.startsWith('PK\u0003\u0004')) {
    throw new UnmeasurableError(
      `${source}: expected an HTTP Archive (HAR), got a ZIP file: unpack it, and name the .har in it`,
    );
  }
  try {
    // Readers of HAR 1.2 must accept a byte order mark.
    entries = JSON.parse(text.replace(/^\uFEFF/, ''))?.log?.entries;
  } catch (cause) {
    throw new UnmeasurableError(`${source}: expected an HTTP Archive (HAR), got text that is not JSON`, {
      cause,
    });
  }
  if (!Array.isArray(entries))
    throw new UnmeasurableError(`${source}: expected an HTTP Archive with \`log.entries\``);
  return entries.flatMap((entry) => exchangeOf(entry, attachment));
}

/** Reads an archive entry. Returns an empty list for an entry without a response. */
export function exchangeOf(value: unknown, attachment: ReadAttachment = () => undefined): Exchange[] {
  const entry = (value ?? {}) as Entry;
  const { request, response } = entry;
  const { method, url = '' } = request ?? {};
  const { status } = response ?? {};
  // Status 0 is a request that the browser aborted.
  if (method === undefined || !status || !URL.canParse(url)) return [];
  const outcome = entry._why?.evidence?.outcome;
  return [
    {
      method: method.toUpperCase(),
      path: new URL(url).pathname,
      requestHeaders: new Map((request?.headers ?? []).map(({ name, value }) => [name.toLowerCase(), value])),
      requestBody: parsed(request?.postData, attachment),
      status,
      responseBody: parsed(response?.content, attachment),
      authorizedBy: entry._authorizedBy ?? [],
      allowedBy: entry._allowedBy ?? [],
      events: entry._events ?? [],
      policyOutcome: typeof outcome === 'string' ? outcome : undefined,
    },
  ];
}

/** Parses a body. Returns undefined if it is not JSON. */
function parsed(content: Content | undefined, attachment: ReadAttachment): unknown {
  const text = textOf(content ?? {}, attachment);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function textOf({ mimeType = 'json', text, encoding, _file: file }: Content, attachment: ReadAttachment) {
  if (text !== undefined) return encoding === 'base64' ? Buffer.from(text, 'base64').toString('utf8') : text;
  // Only JSON is read, because a browser's archive contains many pictures and scripts.
  return typeof file === 'string' && /json/i.test(mimeType) ? attachment(file) : undefined;
}
