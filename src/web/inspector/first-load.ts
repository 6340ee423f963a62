import './layout.tsx';
import './pages/home.tsx';
import './pages/requests.tsx';

// The build imports this file into every page, so that the first page needs one file instead of a dozen. Each file
// would open another connection, with its own handshake.
