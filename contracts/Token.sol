// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title An ERC-20 token with signed approvals (ERC-2612) and signed transfers (ERC-3009).
/// @dev The sandbox writes name, symbol, decimals, version, balances and the supply into the storage, so there is no
/// constructor. The order of the variables is part of that: `npm run contracts` publishes their slots.
contract Token {
    mapping(address owner => uint256) public balanceOf;
    mapping(address owner => mapping(address spender => uint256)) public allowance;
    uint256 public totalSupply;
    string public name;
    string public symbol;
    uint256 internal _decimals;
    /// @notice The version in the domain of signatures (EIP-712).
    string public version;
    mapping(address owner => uint256) public nonces;
    mapping(address authorizer => mapping(bytes32 nonce => bool)) public authorizationState;

    bytes32 private constant DOMAIN_TYPE =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant PERMIT_TYPE =
        keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");
    bytes32 private constant TRANSFER_TYPE = keccak256(
        "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
    bytes32 private constant RECEIVE_TYPE = keccak256(
        "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
    bytes32 private constant CANCEL_TYPE = keccak256("CancelAuthorization(address authorizer,bytes32 nonce)");
    /// @dev Half of the order of secp256k1: a signature above it has a second form (EIP-2).
    uint256 private constant MAX_S = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);
    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);
    event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce);

    function decimals() public view returns (uint8) {
        return uint8(_decimals);
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        _move(msg.sender, to, amount);
        return true;
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        _approve(msg.sender, spender, amount);
        return true;
    }

    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        _spendAllowance(from, msg.sender, amount);
        _move(from, to, amount);
        return true;
    }

    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        bytes32 names = keccak256(bytes(name));
        return keccak256(abi.encode(DOMAIN_TYPE, names, keccak256(bytes(version)), block.chainid, address(this)));
    }

    function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)
        external
    {
        require(block.timestamp <= deadline, "ERC20Permit: expired deadline");
        bytes32 message = keccak256(abi.encode(PERMIT_TYPE, owner, spender, value, nonces[owner]++, deadline));
        require(_isSignedBy(owner, message, v, r, s), "ERC20Permit: invalid signature");
        _approve(owner, spender, value);
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        bytes32 message = keccak256(abi.encode(TRANSFER_TYPE, from, to, value, validAfter, validBefore, nonce));
        _useAuthorization(from, nonce, validAfter, validBefore, _isSignedBy(from, message, v, r, s));
        _move(from, to, value);
    }

    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        require(to == msg.sender, "ERC3009: caller must be the payee");
        bytes32 message = keccak256(abi.encode(RECEIVE_TYPE, from, to, value, validAfter, validBefore, nonce));
        _useAuthorization(from, nonce, validAfter, validBefore, _isSignedBy(from, message, v, r, s));
        _move(from, to, value);
    }

    function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s) external {
        require(!authorizationState[authorizer][nonce], "ERC3009: authorization is used or canceled");
        bytes32 message = keccak256(abi.encode(CANCEL_TYPE, authorizer, nonce));
        require(_isSignedBy(authorizer, message, v, r, s), "ERC3009: invalid signature");
        authorizationState[authorizer][nonce] = true;
        emit AuthorizationCanceled(authorizer, nonce);
    }

    function _useAuthorization(address from, bytes32 nonce, uint256 validAfter, uint256 validBefore, bool isSigned)
        private
    {
        require(block.timestamp > validAfter, "ERC3009: authorization is not yet valid");
        require(block.timestamp < validBefore, "ERC3009: authorization is expired");
        require(!authorizationState[from][nonce], "ERC3009: authorization is used or canceled");
        require(isSigned, "ERC3009: invalid signature");
        authorizationState[from][nonce] = true;
        emit AuthorizationUsed(from, nonce);
    }

    function _isSignedBy(address signer, bytes32 message, uint8 v, bytes32 r, bytes32 s) private view returns (bool) {
        if (uint256(s) > MAX_S) return false;
        address recovered = ecrecover(keccak256(abi.encodePacked("\x19\x01", DOMAIN_SEPARATOR(), message)), v, r, s);
        return recovered != address(0) && recovered == signer;
    }

    function _move(address from, address to, uint256 amount) internal {
        uint256 held = balanceOf[from];
        require(held >= amount, "ERC20: transfer amount exceeds balance");
        unchecked {
            balanceOf[from] = held - amount;
            balanceOf[to] += amount;
        }
        emit Transfer(from, to, amount);
    }

    function _mint(address to, uint256 amount) internal {
        totalSupply += amount;
        unchecked {
            balanceOf[to] += amount;
        }
        emit Transfer(address(0), to, amount);
    }

    function _burn(address from, uint256 amount) internal {
        uint256 held = balanceOf[from];
        require(held >= amount, "ERC20: burn amount exceeds balance");
        unchecked {
            balanceOf[from] = held - amount;
            totalSupply -= amount;
        }
        emit Transfer(from, address(0), amount);
    }

    function _approve(address owner, address spender, uint256 amount) private {
        allowance[owner][spender] = amount;
        emit Approval(owner, spender, amount);
    }

    /// @dev The maximum allowance is infinite: it does not decrease.
    function _spendAllowance(address owner, address spender, uint256 amount) internal {
        uint256 allowed = allowance[owner][spender];
        if (allowed == type(uint256).max) return;
        require(allowed >= amount, "ERC20: insufficient allowance");
        unchecked {
            allowance[owner][spender] = allowed - amount;
        }
    }
}
