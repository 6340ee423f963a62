import { DEVICE_PAGE, devicePage, isVerifyPage, verifyPage } from './pages.ts';

/** Without the inspector, `/` redirects to the reference. */
const startPage = {
  status: 302,
  contentType: 'text/plain; charset=utf-8',
  content: Buffer.alloc(0),
  headers: { location: '/docs' },
};

const pages = { device: devicePage(), verify: verifyPage() };

/** The page of the sandbox at a path, if any. */
export function findSandboxPage(path: string) {
  if (path === '/') return startPage;
  if (path === DEVICE_PAGE) return pages.device;
  return isVerifyPage(path) ? pages.verify : undefined;
}
