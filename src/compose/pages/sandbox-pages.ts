import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { SandboxConfig } from '../../config.ts';
import { requireLocalCaller } from '../../http/origins/local-caller.ts';
import type { FindPage, Page } from '../../http/pages/reference-pages.ts';
import { packageRoot } from '../../package-root.ts';
import type { Log } from '../../ports/log.ts';
import { findSandboxPage } from '../../sandbox/find-page.ts';

interface PagesOptions {
  readonly config: Pick<SandboxConfig, 'host' | 'publicUrls' | 'controlToken'>;
  /** The built inspector; undefined for that of this package. */
  readonly inspectorFolder: string | undefined;
  /** The certificate authority, which clients in other containers have to trust. */
  readonly caPem: string;
  readonly log: Log;
}

const START = 'index.html';

const contentTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
};

// The page draws with what it loads from its own server, and no other page can frame it.
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

/**
 * The pages of a sandbox: the inspector at `/`, and those that stand-ins of providers show.
 *
 * The inspector answers the same callers as the control plane, whose client it is.
 */
export function sandboxPages({ config, inspectorFolder, caPem, log }: PagesOptions): FindPage {
  const folder = inspectorFolder ?? join(packageRoot(), 'dist', 'inspector');
  const admit = requireLocalCaller(config, config.controlToken);
  let inspector: ReadonlyMap<string, Page> | undefined;
  const authority = { contentType: 'application/x-pem-file', content: Buffer.from(caPem) };
  return (path) => {
    if (path === '/ca.pem') return authority;
    if (path !== '/' && !path.startsWith('/inspector/')) return findSandboxPage(path);
    inspector ??= readInspector(folder, admit, log);
    // Without the files of the inspector, `/` leads to the reference.
    return inspector.get(path) ?? findSandboxPage(path);
  };
}

/** Its files by path. All are read at once, so that a build in between does not mix two versions. */
function readInspector(folder: string, admit: Page['admit'], log: Log): ReadonlyMap<string, Page> {
  if (!existsSync(join(folder, START))) {
    log.warn({ folder }, 'the inspector is not built; `npm run build` builds it');
    return new Map();
  }
  return new Map(
    readdirSync(folder).map((name) => [
      name === START ? '/' : `/inspector/${name}`,
      {
        contentType: contentTypes[extname(name)] ?? 'application/octet-stream',
        content: readFileSync(join(folder, name)),
        headers: name === START ? startHeaders : assetHeaders,
        admit,
      },
    ]),
  );
}

const startHeaders = {
  'content-security-policy': policy,
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
  'x-frame-options': 'DENY',
};

// Their names change with their content.
const assetHeaders = { 'cache-control': 'private, max-age=31536000, immutable' };
