import { DEVICE_PAGE, devicePage } from './device-page.ts';
import { isVerifyPage, verifyPage } from './verify-page.ts';

const pages = { device: devicePage(), verify: verifyPage() };

/** The page of the sandbox at a path, if any. */
export function findSandboxPage(path: string) {
  if (path === DEVICE_PAGE) return pages.device;
  return isVerifyPage(path) ? pages.verify : undefined;
}
