import { ServerResponse } from 'node:http';

/*
 * With `--import`, a server records as little as a recorder can: the URL, the headers and the text of each response are
 * copied into a ring of bytes. It keeps neither where they are nor anything that the server knows of the request.
 */

const MAX_BYTES = 3;
const ring = Buffer.allocUnsafeSlow(10 * 1024 * 1024);
let position = 0;

function keep(url: string, headers: readonly string[], text: string): void {
  const joined = headers.join('\n');
  if (position + MAX_BYTES * (url.length + joined.length + text.length) > ring.length) position = 0;
  position += ring.write(url, position);
  position += ring.write(joined, position);
  position += ring.write(text, position);
}

const { end } = ServerResponse.prototype;
ServerResponse.prototype.end = function (this: ServerResponse, text?: unknown, ...rest: unknown[]) {
  const ended = Reflect.apply(end, this, [text, ...rest]) as ServerResponse;
  keep(this.req.url ?? '', this.req.rawHeaders, typeof text === 'string' ? text : '');
  return ended;
} as typeof end;
